"""How fast images come: the ladder of ways to read them, beside the codec's limit and other readers."""

from stoker.measure.bench import run_bench
from stoker.measure.figures import GROUPS, BenchReport, BenchRow, BenchSpec, Group, LeftOut, Prepared
from stoker.measure.machine import Machine

__all__ = ["GROUPS", "BenchReport", "BenchRow", "BenchSpec", "Group", "LeftOut", "Machine", "Prepared", "run_bench"]
