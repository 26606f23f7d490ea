"""A tree of made-up photographs to try things on, without any download."""

from stoker.sample.spec import SampleReport, SampleSpec
from stoker.sample.tree import make_sample

__all__ = ["SampleReport", "SampleSpec", "make_sample"]
