"""The loader for PyTorch, and a map-style dataset for its own loader."""

from stoker.torch.batch import TorchBatch
from stoker.torch.loader import DataLoader
from stoker.torch.map_style import MapDataset

__all__ = ["DataLoader", "MapDataset", "TorchBatch"]
