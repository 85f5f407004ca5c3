"""Which form a file of a network has, by its first bytes or its name."""

from __future__ import annotations

from pathlib import Path

from mizzen.calibration.scheme import Scheme
from mizzen.calibration.source import Source
from mizzen.compiler.source import Extents
from mizzen.frontends.foreign import is_foreign, not_read


def open_source(path: Path, data: bytes, scheme: Scheme, shapes: Extents) -> Source:
    """Read a network. E1xx for what is not one, E198 for one that is quantised already."""
    if data[4:8] == b"TFL3":
        from mizzen.calibration.tflite import TfliteSource

        return TfliteSource(data, path.name, scheme)
    if path.suffix.lower() == ".pt2":
        from mizzen.calibration.exported import ExportedSource

        return ExportedSource(data, path.name, scheme)
    if is_foreign(data, path.name):
        raise not_read(data, path.name, "")
    from mizzen.calibration.onnx import OnnxSource

    return OnnxSource(data, path, scheme, shapes)
