"""One verdict for each plain case, whatever the machine; a case that is two at once gets the one that counts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, get_args

import pytest

from diagnosis.figures import LOCAL, REMOTE, busy_consumer, evidence, spinner
from stoker.diagnosis import Consumer, OtherThread, Setup, Spot, Verdict, decide
from stoker.diagnosis.wording import WORDS

if TYPE_CHECKING:
    from stoker.diagnosis import Evidence

ON_A_DISK = {"stages": {"read": 0.9, "decode": 0.08}, "cpu_share": 0.1, "queue_share": 0.0, "process_cpus": 0.2}
IN_A_STORE = ON_A_DISK | {"stages": {"remote": 0.9, "decode": 0.08}, "files": REMOTE}
COLD = dataclasses.replace(LOCAL, cached_before=0.0, cached_after=0.7)
TRANSFORMER = OtherThread("pool_0", 0.9, Spot("blur", "train.py", 3, "image.filter(blur)", "transform", 0.9))
FOUR_CPUS = {"setup": Setup(threads=1, cpus=4), "process_cpus": 1.1}


def consumer(work: str, cpu_share: float = 0.95) -> Consumer:
    spot = Spot("step", "train.py", 12, "work(images)", work, 0.97)  # type: ignore[arg-type]
    return Consumer(cpu_share=cpu_share, works={spot.work: 0.97, "other": 0.03}, spots=(spot,))


CASES: list[tuple[str, Evidence]] = [
    ("decode-bound", evidence()),
    ("decode-bound", evidence(stages={"convert": 0.9})),
    ("decode-bound", evidence(cpu_share=0.3, queue_share=0.65, other_cpus=1.3, process_cpus=0.7)),
    ("decode-bound", evidence(stages={"read": 0.7, "write": 0.2})),  # read from memory: that is work for a CPU
    ("storage-bound", evidence(**IN_A_STORE)),
    ("storage-bound", evidence(**ON_A_DISK)),  # as slow although it is in the page cache
    ("storage-bound", evidence(**ON_A_DISK, files=dataclasses.replace(COLD, size_bytes=10**12))),  # no room
    ("storage-bound", evidence(**ON_A_DISK, files=dataclasses.replace(COLD, cached_after=0.0))),  # does not stay
    ("storage-bound", evidence(**ON_A_DISK, files=dataclasses.replace(LOCAL, cached_before=None))),
    ("cold-cache", evidence(**ON_A_DISK, files=COLD)),
    ("cold-cache", evidence(**(ON_A_DISK | {"setup": Setup(threads=1, cpus=8)}), files=COLD)),
    ("thread-bound", evidence(**FOUR_CPUS)),
    ("thread-bound", evidence(**FOUR_CPUS, other_cpus=3.0)),
    ("thread-bound", evidence(busy_share=0.3)),  # nothing to do, and yet too late
    ("decode-bound", evidence(**(FOUR_CPUS | {"process_cpus": 3.95}))),  # the consumer has the other CPUs
    ("consumer-bound", busy_consumer(consumer=consumer("model"))),
    ("consumer-bound", busy_consumer(consumer=consumer("waiting", 0.01))),
    ("consumer-bound", busy_consumer(consumer=consumer("other"))),
    ("consumer-bound", busy_consumer(consumer=consumer("python"), gil_held_share=0.05)),
    ("consumer-bound", busy_consumer(consumer=Consumer(cpu_share=0.5))),
    ("transform-bound", busy_consumer(consumer=consumer("transform"))),
    ("transform-bound", busy_consumer(consumer=consumer("transform"), gil_held_share=0.95)),
    ("transform-bound", busy_consumer(consumer=consumer("waiting", 0.0), threads=(TRANSFORMER,))),
    ("gil-bound", busy_consumer(consumer=consumer("python"), gil_held_share=0.95)),
    ("gil-bound", busy_consumer(consumer=consumer("model", 0.3), gil_held_share=0.9, threads=(spinner(0.9),))),
    ("gil-bound", evidence(wait_share=0.1, gil_share=0.6, gil_held_share=0.9, threads=(spinner(0.9),))),
    ("gil-bound", evidence(**IN_A_STORE, gil_held_share=0.9, threads=(spinner(0.9),))),
    ("consumer-bound", busy_consumer(consumer=consumer("model"), gil_held_share=0.9, threads=(spinner(0.9),))),
    ("consumer-bound", busy_consumer(consumer=consumer("waiting", 0.0), gil_held_share=0.9, threads=(spinner(0.9),))),
    ("storage-bound", evidence(**IN_A_STORE, gil_held_share=0.1, threads=(spinner(0.9),))),
    ("balanced", evidence(wait_share=0.12, consumer_share=0.88)),
    ("unknown", evidence(batches=1)),
    ("unknown", evidence(seconds=0.0, batches=0, samples=0, stages={}, consumer=Consumer())),
]


@pytest.mark.parametrize(("verdict", "figures"), CASES, ids=[f"{n}-{verdict}" for n, (verdict, _) in enumerate(CASES)])
def test_each_case_has_its_verdict(verdict: str, figures: Evidence) -> None:
    assert decide(figures).verdict == verdict


def test_every_verdict_has_a_case_and_words() -> None:
    assert {verdict for verdict, _ in CASES} == set(get_args(Verdict)) == set(WORDS)


@pytest.mark.parametrize("figures", [figures for _, figures in CASES])
def test_a_decision_is_a_sentence_and_a_remedy(figures: Evidence) -> None:
    decision = decide(figures)
    assert len(decision.sentence) > 20
    assert len(decision.remedy) > 20
    assert "nan" not in decision.sentence + decision.remedy


def test_sentences_give_the_figures() -> None:
    assert "85% of the decoding threads' time is JPEG" in decide(evidence()).sentence
    assert "could take 7.8x as many images" in decide(evidence()).sentence
    slow = decide(busy_consumer(consumer=consumer("model")))
    assert "step() at train.py:12" in slow.sentence
    assert "2.0x head-room" in slow.sentence
    assert "train.py:12" in decide(busy_consumer(consumer=consumer("transform"))).remedy
    assert "'logger'" in decide(evidence(**IN_A_STORE, gil_held_share=0.9, threads=(spinner(0.9),))).remedy


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
    assert "stoker build" in decide(evidence(stages={"convert": 0.9})).remedy


def test_threads_that_idle_are_not_called_busy() -> None:
    idle = decide(evidence(**(FOUR_CPUS | {"busy_share": 0.3})))
    assert idle.verdict == "thread-bound"
    assert "nothing to do 70%" in idle.sentence
    assert "prefetch=8" in idle.remedy


def test_commands_can_be_typed() -> None:
    ours = dataclasses.replace(COLD, place="my data", is_directory=True)
    assert "find 'my data' -type f -exec cat {} + > /dev/null" in decide(evidence(**ON_A_DISK, files=ours)).remedy
    pattern = dataclasses.replace(COLD, place="data/train-*, other")
    assert "data" not in decide(evidence(**ON_A_DISK, files=pattern)).remedy
    many = ON_A_DISK | {"setup": Setup(threads=16, cpus=2)}
    assert "'stoker repack --resize" in decide(evidence(**many)).remedy
    assert "'stoker build --resize" in decide(evidence(**many, files=dataclasses.replace(LOCAL, loose=True))).remedy
