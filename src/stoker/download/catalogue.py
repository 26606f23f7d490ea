"""The datasets that can be downloaded, from ``catalogue.toml``: their files, URLs, sizes and checksums."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Unpacking:
    """How an archive is unpacked, for datasets that are read as folders."""

    folder: str  # name of the folder, beside the archive
    is_inside: bool  # whether the archive contains that folder; otherwise its whole content goes into it
    max_bytes: int  # the most bytes that its files may have in total; larger archives are refused


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file to fetch."""

    name: str  # its name at the server, which is appended to the base URL
    saved_as: str  # its path below the directory of the dataset
    checksum: str  # required hash of its bytes: ``md5:`` or ``sha256:``, and the digest in hex
    size_bytes: int | None = None  # length in bytes; None if that is not known for sure
    unpacking: Unpacking | None = None  # how it is unpacked; None if builds read it as it is


@dataclass(frozen=True, slots=True)
class AccountNames:
    """The environment variables that hold the account for a dataset."""

    username: str  # variable with the user name
    key: str  # variable with the access key
    directory: str  # variable with the directory to download to
    register: str  # where to get an account


@dataclass(frozen=True, slots=True)
class RemoteDataset:
    """A dataset that can be downloaded."""

    name: str  # as users type it
    base_urls: tuple[str, ...]  # URLs that end with a slash, in the order in which they are tried
    files: tuple[RemoteFile, ...]  # in this order: small ones first, so that a refusal comes early
    account: AccountNames | None = None  # set if the server may want an account
    source: str = ""  # what to build from, below the directory; empty for the directory itself
    preset: str = ""  # the preset of ``stoker build`` for the layout in which the original system packs it


def _dataset(name: str, content: dict[str, Any]) -> RemoteDataset:
    account = content.get("account")
    return RemoteDataset(
        name=name,
        base_urls=tuple(content["base_urls"]),
        files=tuple(_file(**file) for file in content["files"]),
        account=None if account is None else AccountNames(**account),
        source=content.get("source", ""),
        preset=content["preset"],
    )


def _file(name: str, saved_as: str = "", unpacking: dict[str, Any] | None = None, **known: Any) -> RemoteFile:
    unpacked = None if unpacking is None else Unpacking(**unpacking)
    return RemoteFile(name, saved_as or name, unpacking=unpacked, **known)


DATASETS: dict[str, RemoteDataset] = {
    name: _dataset(name, content)
    for name, content in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
"""Every dataset that can be downloaded, by name."""

DEVKIT = DATASETS["imagenet"].files[0]
"""ImageNet's development kit, without which its validation images have no classes."""
