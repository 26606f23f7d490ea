"""Looking at datasets: whether they are whole, what they hold, what they look like. Nothing here prints."""

from stoker.inspect.index import IndexedShard, index_shards
from stoker.inspect.info import (
    DEFAULT_RECORDS,
    ClassCount,
    DatasetInfo,
    ForeignInfo,
    ForeignSplit,
    KeySummary,
    UnfinishedInfo,
    dataset_info,
)
from stoker.inspect.portrait import Portrait, dataset_portrait
from stoker.inspect.show import (
    NAMED,
    SampleTransformer,
    SheetReport,
    SheetSpec,
    TransformedSample,
    ViewSheetSpec,
    parse_epochs,
    parse_views,
    write_contact_sheet,
    write_view_sheet,
)
from stoker.inspect.verify import Problem, VerifyReport, verify_dataset

__all__ = [
    "DEFAULT_RECORDS",
    "NAMED",
    "ClassCount",
    "DatasetInfo",
    "ForeignInfo",
    "ForeignSplit",
    "IndexedShard",
    "KeySummary",
    "Portrait",
    "Problem",
    "SampleTransformer",
    "SheetReport",
    "SheetSpec",
    "TransformedSample",
    "UnfinishedInfo",
    "VerifyReport",
    "ViewSheetSpec",
    "dataset_info",
    "dataset_portrait",
    "index_shards",
    "page",  # a module that needs the extra ``report``, so it is not imported here
    "parse_epochs",
    "parse_views",
    "verify_dataset",
    "write_contact_sheet",
    "write_view_sheet",
]
