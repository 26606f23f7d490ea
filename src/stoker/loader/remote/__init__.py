"""Reading from stores ahead of use."""
