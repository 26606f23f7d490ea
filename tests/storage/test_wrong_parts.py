"""A request for a part that is answered, after a retry, by something else: never taken for the part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stoker.storage import retrying
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from servers.azure import AzureServer
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

DATA = bytes(range(256)) * 4


@pytest.fixture
def object_in_azure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.01)
    file = store_folder("az", request, monkeypatch) / "object"
    file.write_atomically(DATA)
    return file


@pytest.mark.parametrize("wrong", ["whole", "other part", "shorter part"])
@pytest.mark.parametrize(("start", "length"), [(0, 1), (0, 100), (300, 100)])
def test_a_part_of_an_object(
    object_in_azure: StoreLocation, azure_server: AzureServer, wrong: str, start: int, length: int
) -> None:
    azure_server.faults = ["busy", wrong, wrong]
    assert object_in_azure.read_range(start, length, len(DATA)) == DATA[start : start + length]
    assert azure_server.faults == []
