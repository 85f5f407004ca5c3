"""Enumerations that TOSA operations have as attributes; the value is how it is printed."""

from __future__ import annotations

from enum import Enum


class RoundingMode(Enum):
    """How RESCALE rounds. Ref: TOSA 1.0, 2.13.2."""

    SINGLE_ROUND = "single"
    INEXACT_ROUND = "inexact"
    DOUBLE_ROUND = "double"


class ResizeMode(Enum):
    """How RESIZE finds values between samples. Ref: TOSA 1.0, 2.12.1."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


class NanMode(Enum):
    """What an operation makes of a NaN. Ref: TOSA 1.0, 1.10.4."""

    PROPAGATE = "propagate"
    IGNORE = "ignore"
