"""Python's side of ``shim.c``: makes the system fail in forked children of this process."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import sys
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FAIL, FAIL_ALWAYS, SHORT_ALWAYS, INTERRUPT_OFTEN, KILL, TEAR, KILL_AFTER = range(7)
_HANGS_AFTER = 60


@dataclass(frozen=True)
class Fault:
    """What the system does to calls of some kinds on files whose path has ``path`` in it."""

    path: str
    kinds: str
    error: int = errno.EIO
    how: int = FAIL


@dataclass(frozen=True)
class Outcome:
    """What became of an action: how its process ended, what it returned or raised, and how many calls it made."""

    status: int
    value: Any = None
    error: str = ""
    message: str = ""
    calls: int = 0
    trace: str = field(default="", repr=False)


def arm(fault: Fault, position: int) -> None:
    """From now on, in this process, the call at a position (from 1) meets a fault; 0: none does, but they count."""
    library = ctypes.CDLL(None)
    library.fault_arm(os.fsencode(fault.path), fault.kinds.encode(), ctypes.c_long(position), fault.error, fault.how)


def in_child(action: Callable[[], Any], fault: Fault | None, position: int = 0) -> Outcome:
    """Run an action in a fork of this process, which must have no threads.

    Raises:
        AssertionError: It hangs.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(_HANGS_AFTER)
        told = _tell(action, fault, position)
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status != -signal.SIGALRM, f"{fault} at call {position}: it hangs"
    return Outcome(status, **(json.loads(told) if told else {}))


def _tell(action: Callable[[], Any], fault: Fault | None, position: int) -> dict[str, Any]:
    library = ctypes.CDLL(None)
    library.fault_count.restype = ctypes.c_long
    if fault is not None:
        arm(fault, position)
    told: dict[str, Any] = {}
    try:
        told["value"] = action()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent looks at it
        notes = getattr(error, "__notes__", [])
        told = {"error": type(error).__name__, "message": "; ".join([str(error), *notes])}
        told["trace"] = "".join(traceback.format_exception(error))[-3000:]
    calls = library.fault_count()
    library.fault_arm(b"", b"", ctypes.c_long(0), 0, 0)
    sys.stdout.flush()
    return told | {"calls": calls}


def positions(action: Callable[[], Any], fault: Fault) -> int:
    """How many calls of an action a fault may meet."""
    counted = Fault(fault.path, fault.kinds, fault.error, FAIL)
    outcome = in_child(action, counted, 0)
    assert outcome.status == 0
    assert not outcome.error, outcome
    return outcome.calls
