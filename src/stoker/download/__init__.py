"""Fetching public datasets: resumed, checked against published checksums, and retried with back-off."""

from stoker.download.catalogue import DATASETS, DEVKIT, AccountNames, RemoteDataset
from stoker.download.fetch import Account, DownloadError, Stage, parse_base
from stoker.download.run import DownloadReport, download
