"""Builds on a Spark cluster: the same shards, byte for byte, made by executors."""

from stoker.spark.building import build

__all__ = ["build"]
