"""Numbers and sizes as people type them."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.config import MAX_SIZE, check_range, check_size, format_seconds, format_size, format_some, parse_size
from stoker.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), (" 2 kb ", 2000), ("64kib", 65536), ("1.5 GiB", 3 * 2**29), ("4194304TiB", MAX_SIZE)],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["MB", "-1", "1XB", "1,5GB", "1 XB", "1e9", "0", "0.5", "4194305TiB", "9" * 400, "٣"])
def test_what_is_not_a_size_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ConfigError, match=text[:20]):
        parse_size(text)


def test_a_size_in_settings_is_a_text_or_a_number() -> None:
    assert check_size("budget", "1KB", 1) == check_size("budget", np.int64(1000), 1) == 1000
    for wrong in (0, -1, 1.5, None, MAX_SIZE + 1):
        with pytest.raises(ConfigError, match="budget is"):
            check_size("budget", wrong, 1)


@pytest.mark.parametrize("value", [1.0, "1", None, [1], float("nan"), True])
def test_a_number_is_whole(value: object) -> None:
    with pytest.raises(ConfigError, match="it must be a whole number from 1 to 8"):
        check_range("threads", value, 1, 8)


def test_a_number_of_numpy_becomes_a_plain_one() -> None:
    assert type(check_range("threads", np.uint8(8), 1, 8)) is int
    with pytest.raises(ConfigError, match="threads is 9; it must be between 1 and 8"):
        check_range("threads", np.uint8(9), 1, 8)


def test_sizes_and_durations_for_people() -> None:
    assert [format_size(size) for size in (0, 999.9, 1000, 110_200, 2.5e15)] == [
        "0 B",
        "1000 B",
        "1.0 KB",
        "110.2 KB",
        "2500.0 TB",
    ]
    texts = [format_seconds(seconds) for seconds in (0.84, 11.2, 59.2, 200, 7500)]
    assert texts == ["0.8 s", "12 s", "1 min 00 s", "3 min 20 s", "2 h 05 min"]


def test_a_list_in_a_message_names_a_few() -> None:
    assert format_some(["a", "b"], 2) == "a, b"
    assert format_some([7, *range(1001)], 2, "{:02d}".format) == "07, 00 and 1,000 more"
    assert format_some([], 1) == ""
