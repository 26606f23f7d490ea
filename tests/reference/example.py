"""``tf.train.Example`` on the wire: a reader and a canonical writer in plain Python."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, GROUP, END_GROUP, FIXED32 = range(6)
KINDS = {1: "bytes", 2: "float", 3: "int64"}
MAX_GROUP_DEPTH = 32
SHORT = 5  # the most bytes of a tag or a length, which have 32 bits

Features = dict[str, tuple[str, list]]


class MalformedError(Exception):
    """The bytes are not a message. ``offset`` counts from the start of the outermost one."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what} at byte {offset}")
        self.offset = offset


class Message:
    """A message, or a packed list: a part of ``whole`` from ``at`` to ``end``."""

    def __init__(self, whole: bytes, at: int, end: int) -> None:
        self.whole = whole
        self.at = at
        self.end = end

    def take(self, size: int, blame: int) -> bytes:
        """The next ``size`` bytes."""
        if self.at + size > self.end:
            raise MalformedError("too short", blame)
        self.at += size
        return self.whole[self.at - size : self.at]

    def varint(self) -> int:
        """A base-128 number below 2**64."""
        start, value = self.at, 0
        for position in range(10):
            (byte,) = self.take(1, start)
            value += (byte % 128) * 128**position
            if position == 9 and byte > 1:
                break
            if byte < 128:
                return value
        raise MalformedError("overlong number", start)

    def part(self) -> Message:
        """A length, and that many bytes as a message of their own."""
        start = self.at
        size = self.varint()
        if self.at - start > SHORT:
            raise MalformedError("overlong length", start)
        self.take(size, start)
        return Message(self.whole, self.at - size, self.at)

    def tag(self) -> tuple[int, int, int]:
        """Field number, wire type, and the offset where they stand."""
        start = self.at
        value = self.varint()
        if not 8 <= value < 2**32 or self.at - start > SHORT:
            raise MalformedError("bad field number", start)
        return value // 8, value % 8, start

    def value(self, tag: tuple[int, int, int], open_groups: tuple[int, ...] = ()) -> int | bytes | Message | None:
        """The value of a field of any type; ``None`` for a group. ``open_groups`` says where those around it start."""
        number, wire, start = tag
        if wire == VARINT:
            return self.varint()
        if wire == FIXED64:
            return self.take(8, self.at)
        if wire == DELIMITED:
            return self.part()
        if wire == FIXED32:
            return self.take(4, self.at)
        if wire == GROUP:
            self.group(number, (*open_groups, start))
            return None
        raise MalformedError("bad wire type", start)

    def group(self, number: int, open_groups: tuple[int, ...]) -> None:
        """What follows up to the end of group ``number``."""
        if len(open_groups) > MAX_GROUP_DEPTH:
            raise MalformedError("groups too deep", open_groups[-1])
        while self.at < self.end:
            tag = self.tag()
            if tag[:2] == (number, END_GROUP):
                return
            self.value(tag, open_groups)
        raise MalformedError("group without end", open_groups[0])

    def fields(self) -> Iterator[tuple[int, int, int | bytes | Message | None, int]]:
        """(number, wire type, value, offset of the value), one field after the other."""
        while self.at < self.end:
            tag = self.tag()
            at = self.at
            yield tag[0], tag[1], self.value(tag), at


def parts(message: Message, number: int) -> Iterator[Message]:
    """The length-delimited fields of that number."""
    for field, wire, value, _ in message.fields():
        if (field, wire) == (number, DELIMITED):
            assert isinstance(value, Message)
            yield value


def values_of(kind: str, values: Message) -> list:
    """What a BytesList, FloatList or Int64List holds."""
    out: list = []
    for number, wire, value, at in values.fields():
        if number != 1:
            continue
        if kind == "bytes" and wire == DELIMITED:
            out.append(value.whole[value.at : value.end])
        elif kind == "float" and wire == FIXED32:
            out += struct.unpack("<f", value)
        elif kind == "float" and wire == DELIMITED:
            if (value.end - value.at) % 4:
                raise MalformedError("ragged floats", at)
            out += [number for (number,) in struct.iter_unpack("<f", value.whole[value.at : value.end])]
        elif kind == "int64" and wire == VARINT:
            out.append(signed(value))
        elif kind == "int64" and wire == DELIMITED:
            while value.at < value.end:
                out.append(signed(value.varint()))
    return out


def signed(value: int) -> int:
    """A number below 2**64, read as two's complement."""
    return value - 2**64 if value >= 2**63 else value


def parse(payload: bytes) -> Features:
    """All features that hold a list.

    Raises:
        MalformedError: The payload is not an Example.
    """
    out: Features = {}
    for features in parts(Message(payload, 0, len(payload)), 1):
        for entry in parts(features, 1):
            key, feature = parse_entry(entry)
            out.pop(key, None)
            if feature:
                out[key] = feature
    return out


def parse_entry(entry: Message) -> tuple[str, tuple[str, list] | None]:
    """The key and the feature of one map entry."""
    start = entry.at
    name = ""
    for key in parts(entry, 1):
        try:
            name = key.whole[key.at : key.end].decode()
        except UnicodeDecodeError as problem:
            raise MalformedError("key is not UTF-8", key.at) from problem
    feature: tuple[str, list] | None = None
    for value in parts(Message(entry.whole, start, entry.end), 2):
        for number, wire, content, _ in value.fields():
            if number in KINDS and wire == DELIMITED:
                kind = KINDS[number]
                more = values_of(kind, content)
                feature = (kind, feature[1] + more if feature and feature[0] == kind else more)
    return name, feature


def varint(value: int) -> bytes:
    """A number below 2**64 in base 128."""
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def delimited(number: int, body: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number * 8 + DELIMITED) + varint(len(body)) + body


def write_list(kind: str, values: list) -> bytes:
    """A BytesList, FloatList or Int64List."""
    if kind == "bytes":
        return b"".join(delimited(1, value) for value in values)
    if not values:
        return b""
    if kind == "float":
        return delimited(1, struct.pack(f"<{len(values)}f", *values))
    return delimited(1, b"".join(varint(value % 2**64) for value in values))


def write(features: Features) -> bytes:
    """Canonical bytes: keys sorted by their UTF-8 bytes, numbers packed, nothing that could be left out."""
    numbers = {kind: number for number, kind in KINDS.items()}
    entries = b""
    for key in sorted(features, key=str.encode):
        kind, values = features[key]
        feature = delimited(numbers[kind], write_list(kind, values))
        entries += delimited(1, delimited(1, key.encode()) + delimited(2, feature))
    return delimited(1, entries)
