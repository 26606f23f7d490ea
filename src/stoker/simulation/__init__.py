"""Feeding that is larger than the machine at hand, told before anybody pays for it."""

from __future__ import annotations

from stoker.simulation.model import Data, Ranks, Storage, Stretch
from stoker.simulation.run import RankReport, SimulationReport, simulate

__all__ = ["Data", "RankReport", "Ranks", "SimulationReport", "Storage", "Stretch", "simulate"]
