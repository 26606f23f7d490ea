"""The loader for TensorFlow, and a pipeline of TensorFlow's own ops over the same shards."""

from stoker.tensorflow.batches import dataset, state_at
from stoker.tensorflow.graph import graph_dataset
from stoker.tensorflow.profiling import profile

__all__ = ["dataset", "graph_dataset", "profile", "state_at"]
