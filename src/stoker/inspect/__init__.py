"""Inspects datasets and loaders: verify, info, audit, index, show, doctor and bench."""

from typing import TYPE_CHECKING

from stoker.inspect.auditing import (
    DEFAULT_DISTANCE,
    MAX_DISTANCE,
    AuditedImage,
    AuditedSplit,
    AuditReport,
    DuplicateGroup,
    audit,
    audit_splits,
)
from stoker.inspect.bench import BenchReport, BenchSpec, measure_configured, run_bench
from stoker.inspect.diagnosis import doctor
from stoker.inspect.diagnosis_dataset import DatasetReport, DatasetSpec, examine
from stoker.inspect.diagnosis_decision import DoctorReport
from stoker.inspect.index import index_shards
from stoker.inspect.info import (
    DEFAULT_RECORDS,
    ClassCount,
    DatasetInfo,
    ForeignInfo,
    ImagesInfo,
    UnfinishedInfo,
    dataset_info,
)
from stoker.inspect.show import SheetSpec, SheetTransform, write_sheet
from stoker.inspect.verify import verify_dataset

if TYPE_CHECKING:
    from stoker.inspect import page  # needs the extra ``report``: imported where it is used
