"""Decide what runs where: groups of operations become regions of the NPU and of the CPU."""

from mizzen.partition.extraction import Extracted, extract
from mizzen.partition.placement import (
    Partition,
    Place,
    Placed,
    Region,
    partition,
)

__all__ = [
    "Extracted",
    "Partition",
    "Place",
    "Placed",
    "Region",
    "extract",
    "partition",
]
