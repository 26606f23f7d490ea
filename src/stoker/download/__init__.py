"""Fetching public datasets: resumed, verified, and patient with servers."""

from stoker.download.account import Account, parse_base
from stoker.download.catalogue import DATASETS, AccountNames, RemoteDataset
from stoker.download.failure import DownloadError
from stoker.download.run import DownloadReport, DownloadRequest, FetchedFile, download
from stoker.download.watcher import Stage

__all__ = [
    "DATASETS",
    "Account",
    "AccountNames",
    "DownloadError",
    "DownloadReport",
    "DownloadRequest",
    "FetchedFile",
    "RemoteDataset",
    "Stage",
    "download",
    "parse_base",
]
