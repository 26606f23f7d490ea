"""The datasets that Stoker's readers read, and how each is built."""

from __future__ import annotations

BUILDS = {
    "original": ("photos", ["--recipe", "keep"]),
    "restart": ("photos", ["--recipe", "restart"]),
    "rebuilt500": ("photos", ["--resize", "max:500", "--encode", "jpeg:90:420", "--recipe", "restart"]),
    "raw500": ("photos", ["--resize", "max:500", "--encode", "raw", "--preset", "dlbs"]),
    "raw64": ("raw", ["--resize", "exact:64x64", "--encode", "raw", "--preset", "dlbs"]),
}
"""Name of each dataset: the tree it is made of, and the settings of ``stoker build``."""
