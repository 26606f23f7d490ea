"""Pages and pictures that a person looks at: self-contained HTML, and PNG. Needs the extra ``report``.

Raises:
    ConfigError: On import: matplotlib or jinja2 is not installed.
"""

from stoker.errors import ConfigError

try:
    import jinja2  # noqa: F401
    import matplotlib as mpl  # noqa: F401
except ModuleNotFoundError as error:
    message = f"no module {error.name!r}, which draws pages and pictures; run pip install 'stoker[report]'"
    raise ConfigError(message) from error

from stoker.report.bench import bench_page, bench_picture
from stoker.report.info import info_page

__all__ = ["bench_page", "bench_picture", "info_page"]
