"""What may be done about a layer that quantisation makes noisy."""

from __future__ import annotations

from mizzen.calibration.scheme import Activations, Method, Scheme
from mizzen.calibration.seen import Seen
from mizzen.report.precision import LayerPrecision
from mizzen.report.words import short_name

CUT_OFF = 1e-3
"""The part of a layer's numbers from which on what lies beyond its range is worth a word."""


def remedy(layer: LayerPrecision, seen: Seen, scheme: Scheme) -> str:
    """Return what to do, what costs least first."""
    ways: list[str] = []
    track = seen.tracks.get(layer.counterpart)
    outliers = (Method.PERCENTILE, Method.ENTROPY, Method.SEARCH)
    if layer.saturated > CUT_OFF and scheme.method in outliers:
        ways.append("--calibration minmax, which cuts nothing off")
    elif track is not None and track.lonely() is not None and scheme.method not in outliers:
        ways.append("--calibration percentile: one input makes its range")
    if scheme.activations is Activations.INT8:
        ways.append("--activation-type int16")
    ways.append(f"--keep-float {short_name(layer.counterpart)}")
    return ", or ".join(ways)
