"""What a URL means, and that a location in a store behaves as the paths of pathlib do."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import ConfigError
from stoker.storage import StoreLocation, from_uri, is_absolute, location

parts = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1), max_size=5).filter(
    lambda names: not {".", ".."} & set(names)
)


@given(parts)
def test_its_parts_are_those_of_pathlib(names: list[str]) -> None:
    remote = StoreLocation.parse("/".join(["s3://bucket", *names]))
    twin = PurePosixPath("/".join(["/", *names]).replace("//", "/"))
    assert remote.name == twin.name
    assert remote.suffix == twin.suffix
    assert [str(parent)[len("s3://bucket") :] or "/" for parent in remote.parents] == [
        str(parent) for parent in twin.parents
    ]
    assert str(remote.parent / remote.name) == str(remote) if names else remote.parent == remote
    assert StoreLocation.parse(str(remote)) == remote
    assert pickle.loads(pickle.dumps(remote)) == remote
    assert remote.parts == ("s3://bucket", *twin.parts[1:])


@pytest.mark.parametrize(
    ("url", "root", "key"),
    [
        ("s3://bucket", "s3://bucket", ""),
        ("gs://bucket/a/b/", "gs://bucket", "a/b"),
        ("hdfs://host:8020/data", "hdfs://host:8020", "data"),
        ("hdfs:///data", "hdfs://", "data"),
        ("S3://bucket/A", "s3://bucket", "A"),
        ("HTTPS://host/a", "https://host", "a"),
    ],
)
def test_what_a_url_means(url: str, root: str, key: str) -> None:
    assert location(url) == from_uri(url.encode()) == StoreLocation(root, key)
    assert is_absolute(url.encode())


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://host/a", "gs://, s3://, hdfs://"),
        ("file:///a", "give a path, or one that begins with gs://"),
        ("s3:///a", "names no bucket"),
        ("", "the path is empty"),
        ("gs:/bucket/a", "write gs://bucket/a"),
        ("GS:/bucket/a", "write GS://bucket/a"),
        ("s3://bucket/a//b", "an empty part"),
        ("gs://bucket/a/../b", "'..'"),
        ("s3://key:secret@bucket/a", "has credentials in it"),
    ],
)
def test_a_url_that_cannot_be_meant(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        location(url)
    assert "secret" not in str(caught.value)


def test_a_path_stays_one() -> None:
    assert location("some/where") == Path("some/where")
    assert from_uri(b"/a/b") == Path("/a/b")
    assert location("C:/x").is_local
    assert location("C://x").is_local
    assert location("/somewhere/gs:/x").is_local
    assert from_uri(b"s3://a//b/./c/../d") == StoreLocation("s3://a", "b/d")
    remote = StoreLocation("s3://bucket", "a")
    assert location(remote) is remote


def test_a_function_of_the_system_refuses_one() -> None:
    with pytest.raises(TypeError):
        os.fspath(StoreLocation("s3://bucket", "a"))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("url", "module", "message"),
    [
        ("gs://no-such-bucket/x", "obstore.store", r"which gs:// needs; pip install 'stoker\[gcs\]'"),
        ("s3://no-such-bucket/x", "obstore.store", r"which s3:// needs; pip install 'stoker\[s3\]'"),
    ],
)
def test_a_client_that_is_missing_is_named_with_the_scheme_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=message):
        location(url).exists()
