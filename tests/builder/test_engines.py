"""A build is the same whatever makes its shards."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from builder.trees import build, contents, settings_for, write_tree
from stoker.builder import ItemConverter, LocalEngine, ShardJob, build_shard, open_source
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from stoker.format import ShardResult
    from stoker.storage import Location


class PickledTasks:
    """Makes shards one after another, each from what a pickle holds, as an engine on other machines does."""

    def __init__(
        self,
        converter: ItemConverter,
        destination: Location,
        threads: int,  # noqa: ARG002 - one after another
        committed: Callable[[ShardResult], None],
        advanced: Callable[[int, int, int], None],
    ) -> None:
        self._shipped = pickle.dumps((converter, destination))
        self._committed, self._advanced = committed, advanced

    def run(self, jobs: Iterable[ShardJob]) -> None:
        for job in jobs:
            converter, destination = pickle.loads(self._shipped)
            result = pickle.loads(pickle.dumps(build_shard(converter, destination, pickle.loads(pickle.dumps(job)))))
            self._committed(result)
            self._advanced(len(job.items), int(job.items.sizes.sum()), len(result.rejects))


def test_shards_that_are_built_elsewhere_have_the_same_bytes(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"a": 20, "b": 13}, "b/text.JPEG")
    settings = settings_for(source, shards=5, max_rejects=1)
    whole = build(settings, tmp_path / "whole")
    report = build(settings, tmp_path / "out", engine=PickledTasks)
    assert (report.manifest, report.items, report.rejects) == (whole.manifest, 34, whole.rejects)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_two_attempts_at_one_shard_do_not_meet(tmp_path: Path) -> None:
    settings = settings_for(write_tree(tmp_path / "src", {"a": 4}), shards=1)
    build(settings, tmp_path / "whole")
    tree = open_source(settings)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    job = ShardJob("train-00000-of-00001.tfrecord", "train", tree.table)
    (tmp_path / "out").mkdir()
    assert build_shard(converter, tmp_path / "out", job) == build_shard(converter, tmp_path / "out", job)
    assert sorted(contents(tmp_path / "out")) == [job.name, f"{job.name}.idx"]


def test_nothing_is_left_of_shards_that_were_waiting_where_reporting_one_fails(tmp_path: Path) -> None:
    """As in a part that is late: the journal has gone, so no shard that becomes complete can be noted in it."""
    settings = settings_for(write_tree(tmp_path / "src", {"a": 3}))
    tree = open_source(settings)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    names = [f"train-{shard:05d}-of-00003.tfrecord" for shard in range(3)]
    jobs = [ShardJob(name, "train", tree.table.take(np.array([row]))) for row, name in enumerate(names)]
    commits = iter(range(3))

    def before_commit() -> None:
        if next(commits) == 2:
            raise OSError("the third is not to be committed")
        time.sleep(0.2)  # until the third waits, too

    def report(_result: ShardResult) -> None:
        raise FileNotFoundError("build.journal")

    out = tmp_path / "out"
    out.mkdir()
    engine = LocalEngine(converter, location(out), 1, report, lambda *_: None, before_commit=before_commit)
    with pytest.raises(FileNotFoundError):
        engine.run(jobs)
    assert sorted(contents(out)) == [file for name in names[:2] for file in (name, f"{name}.idx")]


def test_a_converter_travels_without_the_list_of_items(tmp_path: Path) -> None:
    few = open_source(settings_for(write_tree(tmp_path / "few", {"a": 1})))
    many = open_source(settings_for(write_tree(tmp_path / "many", {"a": 400})))
    settings = settings_for(tmp_path)
    sizes = [len(pickle.dumps(ItemConverter(tree, settings.recipe, settings.schema))) for tree in (few, many)]
    assert sizes[1] - sizes[0] < 100
    assert len(pickle.dumps(ShardJob("x", "train", many.table))) < 100 * 400
