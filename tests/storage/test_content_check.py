"""Wrong bytes are told from etags that are no MD5."""

from __future__ import annotations

import base64
import hashlib

import pytest

from stoker.storage.backend import Blob, StoreError
from stoker.storage.retrying import ContentCheck

DATA = b"an image"
MD5 = f'"{hashlib.md5(DATA).hexdigest()}"'
OTHER = f'"{hashlib.md5(b"else").hexdigest()}"'


BASE64 = f'"{base64.b64encode(hashlib.md5(DATA).digest()).decode()}"'


@pytest.mark.parametrize("etag", [MD5, MD5.strip('"'), BASE64])
def test_right_bytes_pass_and_wrong_ones_do_not(etag: str) -> None:
    ContentCheck().check_read("key", Blob(DATA, etag))
    with pytest.raises(StoreError):
        ContentCheck().check_read("key", Blob(DATA + b"x", etag))


@pytest.mark.parametrize("etag", [None, "", '"0x8D"', f'{OTHER[:-1]}-3"'])
def test_an_etag_of_another_kind_says_nothing(etag: str | None) -> None:
    ContentCheck().check_read("key", Blob(DATA, etag))


def test_wrong_bytes_are_read_again_until_they_are_right() -> None:
    check = ContentCheck()
    for wrong in (b"An image", b"aN image", b"an Image"):
        with pytest.raises(StoreError, match="not those of its etag") as caught:
            check.check_read("key", Blob(wrong, MD5))
        assert caught.value.retry
    check.check_read("key", Blob(DATA, MD5))


def test_bytes_that_stay_the_same_are_believed() -> None:
    check = ContentCheck()
    for _ in range(3):
        with pytest.raises(StoreError):
            check.check_read("key", Blob(DATA, OTHER))
    check.check_read("key", Blob(DATA, OTHER))


def test_a_store_whose_etags_are_no_md5_is_not_asked_twice_for_ever() -> None:
    check = ContentCheck()
    for number in range(8):
        for _ in range(3):
            with pytest.raises(StoreError):
                check.check_read(f"{number}", Blob(DATA, OTHER))
        check.check_read(f"{number}", Blob(DATA, OTHER))
    check.check_read("next", Blob(DATA, OTHER))


def test_what_was_written_is_read_back_where_the_etag_is_another() -> None:
    check = ContentCheck()
    check.check_written("key", DATA, MD5, lambda: pytest.fail("not needed"))
    check.check_written("key", DATA, OTHER, lambda: DATA)
    with pytest.raises(StoreError, match="other bytes came back"):
        check.check_written("key", DATA, OTHER, lambda: b"An image")
