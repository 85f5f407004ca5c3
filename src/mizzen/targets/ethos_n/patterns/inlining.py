"""Regions that are not worth their place on the NPU, since nothing in them computes much.

Ref: Apache TVM v0.14.0, Ethos-N: InlineNonComputeIntensivePartitions.
"""

from __future__ import annotations

from mizzen.diagnostics import Reason
from mizzen.partition import Device, Partition, Region
from mizzen.targets.ethos_n.patterns.covering import Covering
from mizzen.targets.ethos_n.patterns.table import COMPUTE_INTENSIVE

INLINED = Reason(
    "compute-intensive",
    "nothing in its region computes much: no convolution, dense layer, pooling, mean, sigmoid or "
    "resize",
    "a compute-intensive operator in its region",
    "none",
    "nothing needs doing; inline_non_compute_intensive_partitions=false keeps it on the NPU",
    "Apache TVM v0.14.0, Ethos-N: InlineNonComputeIntensivePartitions",
)


def unprofitable(partition: Partition, covering: Covering) -> dict[int, Reason]:
    """Return the groups of regions on the NPU that have no compute-intensive composite.

    Placed again without them, others may be found: regions between which they stood are one then,
    or not worth it either.
    """
    poor = [region for region in partition.regions if not _is_worth_it(region, covering)]
    return {group: INLINED for region in poor for group in region.groups}


def _is_worth_it(region: Region, covering: Covering) -> bool:
    """Whether a region is on the CPU, or has a compute-intensive composite."""
    if region.device is Device.CPU:
        return True
    groups = set(region.groups)
    return any(
        composite.becomes in COMPUTE_INTENSIVE
        and any(row.group in groups for row in composite.operations)
        for composite in covering.composites
    )
