"""Which rank a process is: every source, their order, and what is said when they disagree."""

from __future__ import annotations

import socket
import sys
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING

import jax
import pytest
import torch.distributed

from stoker.errors import ConfigError, RankWarning
from stoker.loader.ranks import Ranks, discover, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "4"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8"}
PMI = {"PMI_RANK": "3", "PMI_SIZE": "16"}
SLURM = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "32", "SLURM_NTASKS": "999"}
EVERY_NAME = [*TORCHRUN, *OPEN_MPI, *PMI, *SLURM, "LOCAL_WORLD_SIZE"]


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in EVERY_NAME:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def process_group() -> Iterator[None]:
    """This process as the only one of a real process group."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    torch.distributed.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def horovod(rank: int, size: int, *, initialised: bool = True) -> SimpleNamespace:
    """Stands in for a module of Horovod, which no current Python or PyTorch can install."""
    return SimpleNamespace(is_initialized=lambda: initialised, rank=lambda: rank, size=lambda: size)


def set_jax(monkeypatch: pytest.MonkeyPatch, rank: int, size: int) -> None:
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(jax, "process_index", lambda: rank)
    monkeypatch.setattr(jax, "process_count", lambda: size)


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def found() -> tuple[int, int]:
    ranks = discover()
    return ranks.rank, ranks.world_size


def test_without_any_source_a_process_is_alone() -> None:
    assert found() == (0, 1)


@pytest.mark.parametrize(
    ("variables", "ranks", "source"),
    [(TORCHRUN, (1, 4), "RANK"), (OPEN_MPI, (2, 8), "Open MPI"), (PMI, (3, 16), "PMI"), (SLURM, (5, 32), "Slurm")],
)
def test_every_launcher_is_understood(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], ranks: tuple[int, int], source: str
) -> None:
    set_all(monkeypatch, variables)
    assert found() == ranks
    assert source in discover().source


def test_a_batch_script_of_slurm_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"SLURM_PROCID": "0", "SLURM_NTASKS": "32"})
    assert found() == (0, 1)


def test_a_process_group_counts_once_it_is_initialised(process_group: None) -> None:
    assert discover() == Ranks(0, 1, "torch.distributed")


@pytest.mark.parametrize("name", ["horovod.torch", "horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"])
def test_horovod_counts_once_it_is_initialised(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, horovod(0, 0, initialised=False))
    assert found() == (0, 1)
    monkeypatch.setitem(sys.modules, name, horovod(2, 3))
    assert discover() == Ranks(2, 3, f"Horovod ({name})")


def test_jax_counts_once_it_is_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not jax.distributed.is_initialized()
    assert found() == (0, 1)
    set_jax(monkeypatch, 6, 7)
    assert discover() == Ranks(6, 7, "JAX")


def test_a_framework_that_is_not_imported_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch.distributed", "jax"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [])  # an import would now fail
    assert found() == (0, 1)


def test_the_order_of_precedence(monkeypatch: pytest.MonkeyPatch, process_group: None) -> None:
    for variables in (TORCHRUN, OPEN_MPI, PMI, SLURM):
        set_all(monkeypatch, variables)
    set_jax(monkeypatch, 6, 7)
    monkeypatch.setitem(sys.modules, "horovod.torch", horovod(2, 3))
    expected = [(0, 1), (2, 3), (6, 7), (1, 4), (2, 8), (3, 16), (5, 32)]
    removals = [
        lambda: monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False),
        lambda: monkeypatch.delitem(sys.modules, "horovod.torch"),
        lambda: monkeypatch.setattr(jax.distributed, "is_initialized", lambda: False),
        *(lambda n=n: monkeypatch.delenv(n) for n in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")),
    ]
    for number, ranks in enumerate(expected):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert found() == ranks
        assert [warning.category for warning in caught] == [RankWarning] * (len(expected) - 1 - number)
        if number < len(removals):
            removals[number]()
        for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")[: max(0, number - 2)]:
            monkeypatch.delenv(name, raising=False)


def test_two_sources_that_disagree_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**TORCHRUN, **PMI})
    with pytest.warns(RankWarning) as caught:
        assert found() == (1, 4)
    said = str(caught[0].message)
    for part in ("RANK, WORLD_SIZE", "rank 1 of 4", "PMI_RANK, PMI_SIZE", "rank 3 of 16", "torchrun", "give rank="):
        assert part.lower() in said.lower()


def test_sources_that_agree_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**TORCHRUN, "PMI_RANK": "1", "PMI_SIZE": "4"})
    assert found() == (1, 4)


def test_a_torchrun_on_every_node_of_a_slurm_step_is_not_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"})
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert found() == (5, 8)
    for other in ("2", "many"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", other)
        with pytest.warns(RankWarning):
            assert found() == (5, 8)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"RANK": "1"}, ["RANK is '1'", "WORLD_SIZE is not set"]),
        ({"WORLD_SIZE": "4"}, ["WORLD_SIZE is '4'", "RANK is not set"]),
        ({"RANK": "one", "WORLD_SIZE": "4"}, ["RANK is 'one'"]),
        ({"RANK": "1", "WORLD_SIZE": ""}, ["WORLD_SIZE is ''"]),
        ({"RANK": "-1", "WORLD_SIZE": "4"}, ["RANK is '-1'"]),
        ({"RANK": "4", "WORLD_SIZE": "4"}, ["RANK is 4", "WORLD_SIZE is 4"]),
        ({"RANK": "0", "WORLD_SIZE": "0"}, ["WORLD_SIZE is 0"]),
        ({"OMPI_COMM_WORLD_RANK": "1"}, ["OMPI_COMM_WORLD_SIZE is not set"]),
        ({"PMI_SIZE": "2"}, ["PMI_RANK is not set"]),
        ({"SLURM_STEP_NUM_TASKS": "2"}, ["SLURM_PROCID is not set"]),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "²"}, ["SLURM_STEP_NUM_TASKS is '²'"]),
    ],
    ids=str,
)
def test_variables_that_make_no_sense_are_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: list[str]
) -> None:
    set_all(monkeypatch, variables)
    with pytest.raises(ConfigError) as caught:
        discover()
    for part in [*named, "rank= and world_size="]:
        assert part in str(caught.value)
    assert resolve(3, 4) == Ranks(3, 4, "given")  # who gives both is not asked again


def test_damage_of_a_source_that_does_not_count_is_ignored(
    monkeypatch: pytest.MonkeyPatch, process_group: None
) -> None:
    set_all(monkeypatch, {"WORLD_SIZE": "4", "PMI_RANK": "x"})
    assert found() == (0, 1)


@pytest.mark.parametrize("given", [(1, None), (None, 2)])
def test_half_a_pair_is_refused(given: tuple[int | None, int | None]) -> None:
    with pytest.raises(ConfigError, match="left out; give both or none"):
        resolve(*given)
    assert resolve(None, None) == discover()
