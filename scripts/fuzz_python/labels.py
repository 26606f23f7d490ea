"""``labels.txt`` and ``rejects.jsonl`` of a dataset: what is read is written again as the same."""

from __future__ import annotations

from scripts.fuzz_python.scratch import folder
from scripts.fuzz_python.seed_data import dataset
from stoker.format import read_rejects, write_rejects
from stoker.format.directory import read_labels, write_labels

_FOLDER, _AGAIN = folder(), folder()


def one_input(data: bytes) -> None:
    """Read any bytes as either file; the first byte says which."""
    if data[:1] < b"\x80":
        (_FOLDER / "labels.txt").write_bytes(data[1:])
        classes = read_labels(_FOLDER)
        names = [known.name.encode("utf-8", "surrogateescape") for known in classes]
        texts = [known.text.encode("utf-8", "surrogateescape") for known in classes]
        write_labels(_AGAIN, names, texts, 0)
        assert read_labels(_AGAIN) == classes
    else:
        (_FOLDER / "rejects.jsonl").write_bytes(data[1:])
        rejects = read_rejects(_FOLDER)
        write_rejects(_AGAIN, rejects)
        assert read_rejects(_AGAIN) == rejects


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    labels = (dataset() / "labels.txt").read_bytes()
    reject = b'{"key": "n1/a.JPEG", "split": "train", "reason": "it is damaged"}\n'
    return [b"l" + labels, b"l", b"\xff" + reject * 2, b"\xff"]
