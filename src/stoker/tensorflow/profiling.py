"""TensorFlow's own profiler around a tf.data pipeline."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tensorflow as tf

from stoker.errors import StokerError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def profile(logdir: str | Path) -> Iterator[Path]:
    """Trace every op of tf.data pipelines while a ``with`` block runs.

    For pipelines of TensorFlow's ops, such as `graph_dataset`, which `stoker.trace` cannot see into. TensorBoard with
    the package ``xprof`` shows the file in its trace viewer; steps are not needed.

    Args:
        logdir: A directory for TensorBoard; made if it is not there.

    Yields:
        The directory.

    Raises:
        StokerError: TensorFlow wrote no profile, as when another one is running in this process.
        OSError: The directory cannot be made.

    Example:
        >>> with stoker.tensorflow.profile("logs"):  # doctest: +SKIP
        ...     for images, labels in pipeline.take(100):
        ...         pass
    """
    folder = Path(logdir)
    folder.mkdir(parents=True, exist_ok=True)
    before = _profiles(folder)
    try:
        tf.profiler.experimental.start(str(folder), tf.profiler.experimental.ProfilerOptions(python_tracer_level=0))
    except tf.errors.OpError as error:
        raise StokerError(f"{folder}: TensorFlow's profiler does not start: {error.message}") from error
    try:
        yield folder
    finally:
        tf.profiler.experimental.stop()
    if _profiles(folder) == before:
        raise StokerError(f"{folder}: TensorFlow's profiler has written nothing")


def _profiles(folder: Path) -> set[Path]:
    return set(folder.glob("plugins/profile/*/*.xplane.pb"))
