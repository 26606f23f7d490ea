"""The benchmarks are not in every unpacked source: without them there is nothing to test."""

from __future__ import annotations

from repository.checkout import ROOT

collect_ignore_glob = [] if (ROOT / "benchmarks" / "rivals").is_dir() else ["test_*.py"]
