"""What holds a loader or its consumer up: stages, the interpreter's lock, the consumer's stack, one verdict."""

from __future__ import annotations

from stoker.diagnosis.decision import Decision, Verdict, decide
from stoker.diagnosis.evidence import Consumer, Evidence, Files, OtherThread, Setup, Spot
from stoker.diagnosis.report import DoctorReport
from stoker.diagnosis.session import Doctor, doctor
from stoker.diagnosis.trace import Trace, trace

__all__ = [
    "Consumer",
    "Decision",
    "Doctor",
    "DoctorReport",
    "Evidence",
    "Files",
    "OtherThread",
    "Setup",
    "Spot",
    "Trace",
    "Verdict",
    "decide",
    "doctor",
    "trace",
]
