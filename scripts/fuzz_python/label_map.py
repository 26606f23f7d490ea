"""Label maps, validation labels and class texts, in all their forms: every class has one label without gaps."""

from __future__ import annotations

import gzip

from scripts.fuzz_python.scratch import folder
from stoker.sources.labels import read_label_map, read_validation_labels, split_text

_PATH = folder() / "labels"
_GROUND_TRUTH = folder() / "ILSVRC2012_validation_ground_truth.txt"  # a name that is trusted


def one_input(data: bytes) -> None:
    """Read any bytes as each of them; the first byte says as which."""
    _PATH.write_bytes(data[1:])
    if data[:1] < b"\x60":
        label_map = read_label_map(str(_PATH))
        assert len(label_map.names) == len(label_map.texts) == len(set(label_map.names))
        assert label_map.names
    elif data[:1] < b"\xc0":
        _PATH.replace(_GROUND_TRUTH)
        labels = read_validation_labels(_GROUND_TRUTH)
        assert labels.by_number or labels.by_name or labels.bad_lines or labels.tolerant or not labels.class_names()
        for name in (b"ILSVRC2012_val_00000001.JPEG", b"ILSVRC2012_val_99999999.JPEG", b"", b"val_0.JPEG"):
            labels.class_of(name)
    else:
        for line in data[1:].split(b"\n"):
            split_text(line)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    tree = b'{"n1": {"label": 0, "human_labels": "one"}, "n2": {"label": 1}}'
    return [
        b"\0n01440764\ttench\nn01443537\tfish\n",
        b"\0n00000001 1 one\nn00000002 2 two\n",
        b"\0" + tree,
        b"\0" + gzip.compress(tree),
        b"\x60" + b"1\n2\n",
        b"\x60" + b"ImageId,PredictionString\nILSVRC2012_val_00000001,n1 1 2 3 4\n",
        b"\x60" + b"val_0.JPEG\tn1\t0\t0\t9\t9\n",
        b"\x60" + b"n1\nn2\n",
        b"\xff" + b"n1 one\n",
    ]
