"""Samples that were read once need not be read again."""
