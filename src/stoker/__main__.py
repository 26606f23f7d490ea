"""``python -m stoker``: the command line, also where its folder is not on PATH."""

from __future__ import annotations

import sys

from stoker.cli import main

if __name__ == "__main__":
    sys.exit(main.main())
