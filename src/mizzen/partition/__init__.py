"""Decide what runs where: groups of operations become regions of the NPU and of the CPU."""

from mizzen.diagnostics import Device
from mizzen.partition.extraction import Extracted, extract, extract_operations
from mizzen.partition.placement import (
    Partition,
    Placed,
    Region,
    partition,
)

__all__ = [
    "Device",
    "Extracted",
    "Partition",
    "Placed",
    "Region",
    "extract",
    "extract_operations",
    "partition",
]
