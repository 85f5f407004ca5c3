"""Every pass by its name, and pipelines written as names."""

from __future__ import annotations

from mizzen.ops.limits import WindowLimits
from mizzen.passes import Pipeline, standard

STANDARD = standard(WindowLimits(longest_stride=3, largest_kernel=64, longest_upscale=2))
PASSES = {each.name: each for each in STANDARD.passes}


def pipeline(names: str) -> Pipeline:
    return Pipeline(tuple(PASSES[name] for name in names.split(",")))
