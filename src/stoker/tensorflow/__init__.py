"""The loader for TensorFlow, and a pipeline of TensorFlow's own ops over the same shards."""

from stoker.tensorflow.batches import dataset, state_at
from stoker.tensorflow.graph import graph_dataset

__all__ = ["dataset", "graph_dataset", "state_at"]
