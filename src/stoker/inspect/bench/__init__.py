"""How fast images come: the ladder of ways to read them, Stoker's own ways, and the codec's limit."""

from stoker.inspect.bench.cases import CASES, BenchSpec
from stoker.inspect.bench.configured import LoaderSpeed, measure_configured
from stoker.inspect.bench.measuring import BenchReport, BenchRow, Machine, describe_machine, run_bench
from stoker.inspect.bench.turns import Program, ProgramFailed, take_turns

__all__ = [
    "CASES",
    "BenchReport",
    "BenchRow",
    "BenchSpec",
    "LoaderSpeed",
    "Machine",
    "Program",
    "ProgramFailed",
    "describe_machine",
    "measure_configured",
    "run_bench",
    "take_turns",
]
