"""The read path: random access to samples, and batches of pixels in a reproducible order.

Its modules, and those that each is built on::

    opening     opens whatever lies at a path as a dataset ◄── shards
    dataset     one split, its samples by number, and its parts ◄── selection
    readers     read samples of records, of files and of a program ◄── sample, pictures
    settings    the settings of a loader
    feed        which samples an epoch has, in which order ◄── epochs, mixes, sampling, ranks, stoker.order
    engine      makes batches on native threads ◄── batch, caches, read_ahead, stats, tracing
    loader      iterates over epochs, and resumes
"""

from __future__ import annotations

from stoker.loader.batch import (
    Batch,
    BatchOrigin,
    Boxes,
    BoxOutput,
    PaddedBoxes,
    batch_text,
    plain_arrays,
    row_of,
    value_of_sample,
)
from stoker.loader.caches import CacheDirectory, CacheEntry, CacheStats, MemoryCache, NodeCache
from stoker.loader.dataset import Dataset
from stoker.loader.engine import BadSample, BadSampleReport, BatchMaker, SampleEngine
from stoker.loader.epochs import Objects
from stoker.loader.feed import Feed, chosen_fields
from stoker.loader.loader import Loader, loader_in, loader_of, loader_settings, trace
from stoker.loader.mixes import Mix, dataset_of, mix, parts_of
from stoker.loader.opening import (
    choose_split,
    layout_of,
    list_images,
    open_dataset,
    open_main_split,
    open_records,
    open_splits,
    refuse_options,
)
from stoker.loader.pictures import (
    box_classes,
    class_title,
    data_uri,
    displayable,
    draw_boxes,
    draw_mask,
    draw_pixel_boxes,
    first_mask,
    fit,
    fitted_size,
    notebook_batch,
    usable_boxes,
    visible,
)
from stoker.loader.ranks import cpu_share, find_call_site
from stoker.loader.read_ahead import ReadAhead
from stoker.loader.readers import FILE_SCHEMA, ImageFiles, ShardRecords
from stoker.loader.sample import Sample, boxes_of, label_of, mask_of, texts_of
from stoker.loader.sampling import Balanced, Weighted
from stoker.loader.settings import LoaderSettings, OnBad, settings_given
from stoker.loader.stats import LoaderStats, StageStats
