"""How fast images come, against the codec's limit and against other ways to read them."""

from stoker.measure.bench import BenchReport, BenchRow, BenchSpec, run_bench
from stoker.measure.machine import Machine

__all__ = ["BenchReport", "BenchRow", "BenchSpec", "Machine", "run_bench"]
