"""Tests that need real servers say so: `make test` runs without them."""

from __future__ import annotations

import re

from repository.checkout import ROOT

SERVERS = re.compile(
    r"\b(s3_server|gcs_server|hdfs_server|spark_cluster|faulty_s3|faulty_gcs|place_in|remote_places)\b"
)


def test_tests_with_servers_are_marked() -> None:
    modules = {path: path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path.name != "test_marks.py"}
    using = {path for path, text in modules.items() if SERVERS.search(text)}
    marked = {path for path, text in modules.items() if "pytest.mark.servers" in text}
    assert len(using) > 10
    assert using <= marked
