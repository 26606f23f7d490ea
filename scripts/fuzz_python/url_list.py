"""Lists of URLs: refused, or items whose paths can be asked for or are told to be no URLs."""

from __future__ import annotations

from contextlib import suppress

from scripts.fuzz_python.scratch import folder
from stoker.sources import list_source
from stoker.storage.backend import StoreError
from stoker.storage.web import checked

_FOLDER = folder()
_NAMES = ("list.txt", "list.csv", "list.tsv", "list.jsonl")
_URL = b"http://a.example/1.jpg"


def one_input(data: bytes) -> None:
    """Read any bytes as a list; the first byte says of which kind."""
    file = _FOLDER / _NAMES[data[0] % 4 if data else 0]
    file.write_bytes(data[1:])
    tree = list_source(str(file))
    assert len(tree.table) <= data.count(b"\n") + data.count(b"\r") + 1
    for item in tree.table if tree.latency == "web" else ():
        with suppress(StoreError):
            assert checked(item.path).lower().startswith(("http://", "https://"))
        values = tree.stored.values(item)
        assert values.keys() == tree.fields.keys()


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    text = _URL + b"\nhttps://[::1]:80/2?x=1#y\r\n\nfile:///etc/passwd\nhttp://\xc3\xbc.example/a b\n"
    csv = b'url,label,caption\n%b,1,"a ""b"", c"\nhttp://b.example:8080/x//y,0,\n,,\n' % _URL
    lines = b'{"url": "http:\\/\\/a.example\\/1.jpg", "label": "cat", "n": 1}\n{"url": null, "tags": ["x"]}\n'
    return [b"\0" + text, b"\1" + csv, b"\2" + csv.replace(b",", b"\t"), b"\3" + lines]
