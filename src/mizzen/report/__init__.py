"""What a compilation says, as plain data: placement, memory, estimates."""

from mizzen.report.compilation import (
    Area,
    CompileReport,
    Measure,
    OperatorPlacement,
    Region,
)
from mizzen.report.sidecar import read_sidecar, sidecar_path, write_sidecar

__all__ = [
    "Area",
    "CompileReport",
    "Measure",
    "OperatorPlacement",
    "Region",
    "read_sidecar",
    "sidecar_path",
    "write_sidecar",
]
