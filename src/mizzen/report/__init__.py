"""What a compilation says, as plain data: placement, memory, estimates."""

from mizzen.diagnostics import Device
from mizzen.report.compilation import (
    Area,
    CompileReport,
    Measure,
    OperatorPlacement,
)
from mizzen.report.sidecar import read_sidecar, sidecar_path, write_sidecar

__all__ = [
    "Area",
    "CompileReport",
    "Device",
    "Measure",
    "OperatorPlacement",
    "read_sidecar",
    "sidecar_path",
    "write_sidecar",
]
