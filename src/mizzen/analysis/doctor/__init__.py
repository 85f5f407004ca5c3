"""Why an artifact fails on a board whose firmware says nothing but "invoke failed".

Two sources of evidence: what artifact, board and firmware say of one another (`checks`), and the
log that the firmware wrote, with the NPU's STATUS register (`log`, `status`, `stream`). The texts
that drivers and runtimes write are rows of one table (`messages`), the causes of another
(`causes`); `diagnosis` puts them together and ranks them.

Nothing here runs anything on hardware, and a log is never trusted.
"""

from mizzen.analysis.doctor.causes import Cause
from mizzen.analysis.doctor.checks import Check
from mizzen.analysis.doctor.diagnosis import Certainty, Diagnosis, Verdict, doctor
from mizzen.analysis.doctor.firmware import Firmware
from mizzen.analysis.doctor.status import StatusReading, read_status

__all__ = [
    "Cause",
    "Certainty",
    "Check",
    "Diagnosis",
    "Firmware",
    "StatusReading",
    "Verdict",
    "doctor",
    "read_status",
]
