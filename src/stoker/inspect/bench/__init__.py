"""How fast images come: the ladder of ways to read them, Stoker's own ways, and the codec's limit."""

from stoker.inspect.bench.cases import CASES, BenchSpec
from stoker.inspect.bench.run import (
    BenchReport,
    BenchRow,
    LoaderSpeed,
    Machine,
    describe_machine,
    measure_configured,
    run_bench,
)
