"""The write path: images to shards. It meets the read path only in the bytes on disk."""

from __future__ import annotations

from stoker.build.forecast import BuildForecast, forecast
from stoker.build.run import BuildReport, build
from stoker.build.settings import BuildSettings, SourceSettings

__all__ = ["BuildForecast", "BuildReport", "BuildSettings", "SourceSettings", "build", "forecast"]
