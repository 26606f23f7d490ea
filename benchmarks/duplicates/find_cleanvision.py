"""Print the sets of images that CleanVision takes for duplicates: python find_cleanvision.py FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cleanvision import Imagelab

if __name__ == "__main__":  # it starts processes
    lab = Imagelab(data_path=sys.argv[1])
    lab.find_issues({"exact_duplicates": {}, "near_duplicates": {}}, verbose=False)
    sets = [group for kind in ("exact_duplicates", "near_duplicates") for group in lab.info[kind]["sets"]]
    print(json.dumps([[Path(path).name for path in group] for group in sets]))
