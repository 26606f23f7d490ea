"""The read path: datasets by number, and batches of pixels in a known order."""

from stoker.feed.batch import Batch
from stoker.feed.dataset import Dataset, Sample
from stoker.feed.loader import Loader
from stoker.feed.opening import open_dataset

__all__ = ["Batch", "Dataset", "Loader", "Sample", "open_dataset"]
