"""How fast images come: the ladder of ways to read them, Stoker's own ways, and the codec's limit."""

from stoker.inspect.bench.cases import CASES, Group, Task
from stoker.inspect.bench.images import Prepared
from stoker.inspect.bench.measuring import (
    BenchProgress,
    BenchReport,
    BenchRow,
    BenchSpec,
    LeftOut,
    Machine,
    describe_machine,
    run_bench,
)
from stoker.inspect.bench.turns import Program, ProgramFailed, take_turns

__all__ = [
    "CASES",
    "BenchProgress",
    "BenchReport",
    "BenchRow",
    "BenchSpec",
    "Group",
    "LeftOut",
    "Machine",
    "Prepared",
    "Program",
    "ProgramFailed",
    "Task",
    "describe_machine",
    "run_bench",
    "take_turns",
]
