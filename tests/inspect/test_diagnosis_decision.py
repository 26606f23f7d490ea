"""One verdict for each plain case, whatever the machine; a case that is two at once gets the one that counts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, get_args

import pytest

from small_cases import each
from stoker.inspect.diagnosis_decision import WORDS, Consumer, Evidence, Files, OtherThread, Setup, Verdict, decide

if TYPE_CHECKING:
    from typing import Any

LOCAL = Files("dataset", remote=False, size_bytes=10**9, memory_bytes=10**10, cached_before=1.0, cached_after=1.0)
REMOTE = Files("s3://bucket/dataset", remote=True)
COMPUTES = Consumer(cpu_share=0.95, queue_share=0.03)
SLEEPS = Consumer(cpu_share=0.01)
STARVES = Consumer(cpu_share=0.3, blocked_share=0.65)


def evidence(**changed: Any) -> Evidence:
    """A loader whose two threads decode all the time for a consumer that only waits, with everything in memory."""
    plain = Evidence(
        seconds=10.0,
        batches=100,
        samples=6400,
        wait_share=0.9,
        gil_share=0.0,
        consumer_share=0.1,
        busy_share=0.99,
        cpu_share=0.95,
        queue_share=0.03,
        stages={"read": 0.03, "parse": 0.01, "decode": 0.85, "resample": 0.1},
        bytes_per_second=7e7,
        process_cpus=1.98,
        other_cpus=0.01,
        gil_held_share=0.02,
        consumer=Consumer(cpu_share=0.9),
        threads=(),
        files=LOCAL,
        setup=Setup(threads=2, cpus=2, shuffle="full", batch_size=64),
    )
    return dataclasses.replace(plain, **changed)


def busy_consumer(consumer: Consumer, **changed: Any) -> Evidence:
    """A consumer that never waits, and a loader with twice the speed."""
    given = {"wait_share": 0.01, "consumer_share": 0.99, "busy_share": 0.5, "process_cpus": 1.5} | changed
    return evidence(consumer=consumer, **given)


def beside_a_spinner(gil_held_share: float = 0.9) -> dict[str, Any]:
    """What a thread that does nothing but Python adds."""
    return {"gil_held_share": gil_held_share, "threads": (OtherThread("logger", 0.9),)}


ON_A_DISK = {"stages": {"read": 0.9, "decode": 0.08}, "cpu_share": 0.1, "queue_share": 0.0, "process_cpus": 0.2}
IN_A_STORE = ON_A_DISK | {"stages": {"remote": 0.9, "decode": 0.08}, "files": REMOTE}
COLD = dataclasses.replace(LOCAL, cached_before=0.0, cached_after=0.7)
FOUR_CPUS = {"setup": Setup(threads=1, cpus=4), "process_cpus": 1.1}


CASES: list[tuple[str, Evidence]] = [
    ("decode-bound", evidence()),
    ("decode-bound", evidence(stages={"convert": 0.9})),
    ("decode-bound", evidence(cpu_share=0.3, queue_share=0.65, other_cpus=1.3, process_cpus=0.7)),
    ("decode-bound", evidence(stages={"read": 0.7, "write": 0.2})),  # read from memory: that is work for a CPU
    ("storage-bound", evidence(**IN_A_STORE)),
    ("storage-bound", evidence(**ON_A_DISK)),  # as slow although it is in the page cache
    ("storage-bound", evidence(**ON_A_DISK, files=dataclasses.replace(COLD, size_bytes=10**12))),  # does not fit
    ("storage-bound", evidence(**ON_A_DISK, files=dataclasses.replace(COLD, cached_after=0.0))),  # does not stay
    ("storage-bound", evidence(**ON_A_DISK, files=dataclasses.replace(LOCAL, cached_before=None))),
    ("cold-cache", evidence(**ON_A_DISK, files=COLD)),
    ("cold-cache", evidence(**(ON_A_DISK | {"setup": Setup(threads=1, cpus=8)}), files=COLD)),
    ("thread-bound", evidence(**FOUR_CPUS)),
    ("thread-bound", evidence(**FOUR_CPUS, other_cpus=3.0)),
    ("thread-bound", evidence(busy_share=0.3)),  # nothing to do, and yet too late
    ("decode-bound", evidence(**(FOUR_CPUS | {"process_cpus": 3.95}))),  # the consumer has the other CPUs
    ("consumer-bound", busy_consumer(SLEEPS)),
    ("consumer-bound", busy_consumer(Consumer())),  # where the system does not say
    ("consumer-bound", busy_consumer(Consumer(cpu_share=0.3))),
    ("transform-bound", busy_consumer(COMPUTES)),
    ("transform-bound", busy_consumer(Consumer(cpu_share=0.4, queue_share=0.5))),  # on a busy machine
    ("consumer-bound", busy_consumer(COMPUTES, setup=Setup(2, 2, accelerator=True))),  # waiting for it, perhaps
    ("gil-bound", busy_consumer(COMPUTES, gil_held_share=0.95)),
    ("gil-bound", busy_consumer(COMPUTES, gil_held_share=0.95, setup=Setup(2, 2, accelerator=True))),
    ("gil-bound", busy_consumer(STARVES, **beside_a_spinner())),
    ("gil-bound", evidence(wait_share=0.1, gil_share=0.6, **beside_a_spinner())),
    ("gil-bound", evidence(**IN_A_STORE, **beside_a_spinner())),
    ("transform-bound", busy_consumer(COMPUTES, **beside_a_spinner())),  # it computes without the lock
    ("consumer-bound", busy_consumer(SLEEPS, **beside_a_spinner())),  # it does not miss the lock
    ("consumer-bound", busy_consumer(STARVES, **beside_a_spinner(0.1))),
    ("storage-bound", evidence(**IN_A_STORE, **beside_a_spinner(0.1))),
    ("balanced", evidence(wait_share=0.12, consumer_share=0.88)),
    ("unknown", evidence(batches=1)),
    ("unknown", evidence(seconds=0.0, batches=0, samples=0, stages={}, consumer=Consumer())),
]


@each(("verdict", "figures"), CASES)
def test_each_case_has_its_verdict(verdict: str, figures: Evidence) -> None:
    assert decide(figures).verdict == verdict


def test_every_verdict_has_a_case_and_words() -> None:
    assert {verdict for verdict, _ in CASES} == set(get_args(Verdict)) == set(WORDS)


@each("figures", [figures for _, figures in CASES])
def test_a_decision_is_a_sentence_and_a_remedy(figures: Evidence) -> None:
    decision = decide(figures)
    assert len(decision.sentence) > 20
    assert len(decision.remedy) > 20
    assert "nan" not in decision.sentence + decision.remedy


def test_sentences_give_the_figures() -> None:
    assert "85% of the decoding threads' time is decoding, on 2" in decide(evidence()).sentence
    assert "could take 10.0x as many images" in decide(evidence()).sentence
    slow = decide(busy_consumer(SLEEPS, threads=(OtherThread("pool_0", 0.9),)))
    assert "could make 2.0x as many images" in slow.sentence
    assert "'pool_0' 90%" in slow.sentence
    assert "97% of the time the loop itself computes" in decide(busy_consumer(COMPUTES)).sentence
    assert "'logger'" in decide(evidence(**IN_A_STORE, **beside_a_spinner())).remedy


@pytest.mark.parametrize("consumer", [SLEEPS, COMPUTES])
@pytest.mark.parametrize("held", [0.02, 0.95])
def test_what_the_loop_does_is_left_to_a_profiler(consumer: Consumer, held: float) -> None:
    assert "py-spy" in decide(busy_consumer(consumer, gil_held_share=held)).remedy


@pytest.mark.parametrize(
    ("setup", "remedy"),
    [
        (Setup(2, 2, shuffle="full", ahead_bytes=2_000_000), "ReadAhead('2"),
        (Setup(2, 2, shuffle="full", connections=4), "connections=16"),
        (Setup(2, 2, shuffle="full"), "BlockShuffle"),
        (Setup(2, 2, shuffle="block"), "NodeCache"),
        (Setup(2, 2, shuffle="block", cached=True), "--resize"),
    ],
)
def test_the_remedy_for_a_store_is_the_cheapest_that_was_not_taken(setup: Setup, remedy: str) -> None:
    assert remedy in decide(evidence(**(IN_A_STORE | {"setup": setup}))).remedy


def test_the_other_remedies_depend_on_the_settings() -> None:
    assert "threads=4" in decide(evidence(**FOUR_CPUS)).remedy
    assert "threads=8" in decide(evidence(**ON_A_DISK)).remedy
    assert "MemoryCache" in decide(evidence(**ON_A_DISK, setup=Setup(threads=16, cpus=2))).remedy
    assert 'decode="fast"' in decide(evidence()).remedy
    assert 'decode="fast"' not in decide(evidence(setup=Setup(2, 2, decode="fast"))).remedy
    left_to_pillow = evidence(stages={"convert": 0.9, "decode": 0.1}, pillow_share=0.4)
    assert "40% of the images come from Pillow, under the GIL" in decide(left_to_pillow).sentence
    assert ": stoker repack DATASET NEW" in decide(left_to_pillow).remedy
    photos = dataclasses.replace(left_to_pillow, files=Files("photos", is_directory=True, loose=True), unreadable=3)
    assert decide(photos).remedy.endswith(": stoker build photos NEW --max-rejects 3")
    lacking = Setup(2, 2, missing=("this build of the core has no libpng",))
    assert decide(dataclasses.replace(left_to_pillow, setup=lacking)).remedy == "this build of the core has no libpng"


@pytest.mark.parametrize("files", [LOCAL, REMOTE])
@pytest.mark.parametrize("decode", [0.0, 0.001])
def test_the_remedies_for_pixels_are_not_those_for_jpegs(files: Files, decode: float) -> None:
    """One image in a thousand that takes longer is no reason to decode differently."""
    pixels = dataclasses.replace(files, pixels=True)
    stages = {"read": 0.64, "write": 0.3, "check": 0.05, "decode": decode}
    settings: list[dict[str, Any]] = [{}, {"setup": Setup(threads=16, cpus=2, connections=99)}]
    for changes in ({"stages": stages}, *(ON_A_DISK | more for more in settings), *(IN_A_STORE | s for s in settings)):
        remedy = decide(evidence(**changes | {"files": pixels})).remedy
        assert not any(word in remedy for word in ("decode=", "--recipe", "--resize", "JPEG decode"))
    assert "these are pixels" in decide(evidence(stages=stages, files=pixels)).remedy
    assert "check=False spares" in decide(evidence(stages=stages, files=pixels)).remedy


def test_threads_that_idle_are_not_called_busy() -> None:
    idle = decide(evidence(**(FOUR_CPUS | {"busy_share": 0.3})))
    assert idle.verdict == "thread-bound"
    assert "nothing to do 70%" in idle.sentence
    assert "prefetch=8" in idle.remedy


def test_commands_can_be_typed() -> None:
    ours = dataclasses.replace(COLD, name="my data", is_directory=True)
    assert "find 'my data' -type f -exec cat {} + > /dev/null" in decide(evidence(**ON_A_DISK, files=ours)).remedy
    pattern = dataclasses.replace(COLD, name="data/train-*, other")
    assert "data" not in decide(evidence(**ON_A_DISK, files=pattern)).remedy
    many = ON_A_DISK | {"setup": Setup(threads=16, cpus=2)}
    assert "stoker repack DATASET NEW --resize short:256, which is lossy" in decide(evidence(**many)).remedy
    loose = dataclasses.replace(LOCAL, name="my data", is_directory=True, loose=True)
    assert "stoker build 'my data' NEW --resize short:256, " in decide(evidence(**many, files=loose)).remedy


def test_what_is_lossy_is_called_lossy() -> None:
    remedy = decide(evidence()).remedy
    assert "--recipe restart (no loss)" in remedy
    assert "--resize short:256 (lossy)" in remedy
