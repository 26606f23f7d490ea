"""The ways to read that a benchmark compares; each module yields the number of images of one batch after another."""
