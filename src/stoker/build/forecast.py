"""Everything that can be said about a build before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.build.estimate import Estimate, estimate, sample_records
from stoker.build.job import ItemConverter
from stoker.build.plan import Plan, make_plan
from stoker.build.run import open_source
from stoker.build.survey import Survey, survey

if TYPE_CHECKING:
    from stoker.build.settings import BuildSettings
    from stoker.types import Progress


@dataclass(frozen=True, slots=True, eq=False)
class BuildForecast:
    """What a build would do.

    Attributes:
        settings: Its settings.
        plan: Splits, shards and items.
        class_counts: Items of each class, over all splits.
        survey: What the files hold, by their first bytes.
        estimate: Bytes and seconds.
    """

    settings: BuildSettings
    plan: Plan
    class_counts: tuple[int, ...]
    survey: Survey
    estimate: Estimate


def forecast(settings: BuildSettings, progress: Progress | None = None) -> BuildForecast:
    """Look at the source, convert a small sample of it, and write nothing.

    Args:
        settings: What would be built.
        progress: Told how far the listing is, where that takes long.

    Raises:
        ConfigError: The settings do not fit the source.
        SourceError: The source cannot be listed.
    """
    tree = open_source(settings.source, progress)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    size, _ = sample_records(tree, converter, settings.threads)
    plan = make_plan(tree, settings, size)
    return BuildForecast(
        settings,
        plan,
        tuple(np.bincount(tree.table.labels + 1, minlength=len(tree.classes) + 1)[1:].tolist()),
        survey(tree, settings.threads),
        estimate(plan, converter, settings.threads),
    )
