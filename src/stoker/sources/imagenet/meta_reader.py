"""SciPy's reader of MATLAB's files in a process of its own: ``python meta_reader.py < meta.mat``.

It is not made for damaged files: one changed byte can end the process that reads it. What it finds is written as JSON.
"""

from __future__ import annotations

import io
import json
import resource
import sys

from scipy.io import loadmat

_MOST_MEMORY = 2**32


def main() -> None:
    """Write name, number and text of each class of the ``meta.mat`` on standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))  # a header may claim any size
    synsets = loadmat(io.BytesIO(sys.stdin.buffer.read()), squeeze_me=True, struct_as_record=False)["synsets"]
    leaves = [synset for synset in synsets if int(synset.num_children) == 0]
    json.dump([(str(leaf.WNID), int(leaf.ILSVRC2012_ID), str(leaf.words)) for leaf in leaves], sys.stdout)


if __name__ == "__main__":
    main()
