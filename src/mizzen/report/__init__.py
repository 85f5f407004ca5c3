"""What a compilation says, as plain data: placement, memory, estimates, diagnostics.

A `CompileReport` is made once, by a backend, and then only read: `mizzen compile` and `check` print
it, `Artifact.report` carries it, and a JSON file beside it (`compilation`) keeps it, so that
faults and listings of a later run can name the operators of the user's model.

It holds numbers, names and reasons, no graphs and no objects of a compiler. It knows no NPU and no
front-end; what only one family has to say stands in fields that may be empty.
"""

from mizzen.diagnostics import Device
from mizzen.report.compilation import (
    Area,
    CompileReport,
    Measure,
    OperatorPlacement,
    digest_of_other,
    read_sidecar,
    sidecar,
    sidecar_path,
)

__all__ = [
    "Area",
    "CompileReport",
    "Device",
    "Measure",
    "OperatorPlacement",
    "digest_of_other",
    "read_sidecar",
    "sidecar",
    "sidecar_path",
]
