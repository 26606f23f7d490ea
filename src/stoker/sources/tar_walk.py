"""The members of a tar, read header by header; nothing is ever unpacked, and nothing in it is believed.

`tarfile` understands the headers (ustar, GNU long names, PAX). What it reads from is one of the classes of
`stoker.sources.tar_bytes`.
"""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING, Any, cast

from stoker.errors import SourceError
from stoker.sources.tar_bytes import TAR_DAMAGE, cut_short, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.sources.tar_bytes import TarBytes

_MAX_HEADER_BYTES = 2**20


def walk(source: TarBytes) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar in order, directories and links too.

    Names are as the tar spells them: not safe to be joined to any path. Sizes are checked against the end of a tar
    whose size is known.

    Raises:
        SourceError: It is damaged or cut short; the message says where.
        OSError: It cannot be read.
    """
    source.budget = _MAX_HEADER_BYTES
    try:
        tar = tarfile.TarFile(fileobj=source, mode="r", encoding="utf-8", errors="surrogateescape")  # type: ignore[arg-type]
    except TAR_DAMAGE as error:
        raise SourceError(f"{source.where} is not a tar: {error}", path=source.where) from error
    end = 0
    while (member := _next(tar, source)) is not None:
        if member.size < 0 or member.offset_data < end:
            raise damaged(source, end, f"the size of {member.name!r} is {member.size}")
        end = member.offset_data + member.size
        if source.size is not None and end > source.size:
            problem = f"{member.name!r} would end at byte {end}, the tar ends at byte {source.size}"
            raise cut_short(source, member.offset, problem)
        yield member
    if source.last.count(0) == tarfile.BLOCKSIZE:
        return
    if len(source.last) < tarfile.BLOCKSIZE:
        raise cut_short(source, tar.offset, "the blocks of zeros that end a tar are missing")
    raise damaged(source, tar.offset, "what is there is no header")


def read_member(source: TarBytes, member: tarfile.TarInfo, limit: int) -> bytes:
    """Return the bytes of the member that `walk` has just yielded.

    Raises:
        SourceError: It is larger than ``limit``, or the tar ends inside it.
        OSError: It cannot be read.
    """
    if member.size > limit:
        problem = f"{member.name!r} has {member.size} bytes, more than {limit}"
        raise SourceError(f"{source.where}: {problem}", path=source.where, offset=member.offset)
    source.budget = member.size
    try:
        data = source.read(member.size)
    except TAR_DAMAGE as error:
        raise damaged(source, member.offset, str(error)) from error
    if len(data) < member.size:
        raise cut_short(source, member.offset, f"{member.name!r} is not whole")
    return data


def _next(tar: tarfile.TarFile, source: TarBytes) -> tarfile.TarInfo | None:
    source.budget = _MAX_HEADER_BYTES
    try:
        member = tar.next()
    except TAR_DAMAGE as error:
        raise damaged(source, tar.offset, str(error)) from error
    cast("Any", tar).members.clear()  # it would keep them all
    return member
