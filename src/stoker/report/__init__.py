"""The page and the picture of a benchmark. Needs the extra ``report``.

Raises:
    ConfigError: On import: matplotlib or jinja2 is not installed.
"""

from stoker.report.bench import bench_page, bench_picture

__all__ = ["bench_page", "bench_picture"]
