"""Checks of a loader's promises on a dataset of yours."""

from stoker.testing.report import ResumeChange, ResumeReport
from stoker.testing.resume import check_resume

__all__ = ["ResumeChange", "ResumeReport", "check_resume"]
