"""What rivals cannot read is not measured: no figure stands alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stoker.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--preset", "dlbs", "--img-size", "32"], "holds raw tensors; 'stoker repack'"),
        (["--compression", "gzip"], "holds compressed shards; 'stoker repack'"),
        ([], "holds image files; 'stoker build'"),
    ],
)
def test_other_datasets_are_refused(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    place = photos
    if words:
        place = tmp_path / "out"
        assert main(["build", str(photos), str(place), *words]) == 0
    assert main(["bench", str(place), "--rounds", "1"]) == 2
    assert message in capsys.readouterr().err
