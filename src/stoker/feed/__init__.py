"""The read path: datasets by number, and batches of pixels in a known order."""

from stoker.feed.batch import Batch
from stoker.feed.config import loader_settings
from stoker.feed.dataset import Dataset
from stoker.feed.foreign import RecordKeys
from stoker.feed.loader import Loader
from stoker.feed.opening import open_dataset
from stoker.feed.sample import Sample

__all__ = ["Batch", "Dataset", "Loader", "RecordKeys", "Sample", "loader_settings", "open_dataset"]
