"""Bounds on throughput that no mapping can pass: they know the network and the machine alone."""

from __future__ import annotations

import numpy as np

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.machine.work import cycles
from mizzen.mesh.network.boxes import box_of
from mizzen.mesh.network.network import Network
from mizzen.mesh.network.regions import work_of


def array_bound(network: Network, machine: Machine) -> float:
    """Return images a second if all usable elements worked all the time on layers as they are.

    What the arrays multiply, and the tensors added to their sums, count; layers without
    multiplications do not.
    """
    works = [
        work_of(network, layer, box_of(network.tensors[layer.output].shape))
        for layer in network.layers
    ]
    counts = np.bincount(machine.element_kind[machine.usable], minlength=len(machine.kinds))
    rate = 0.0
    for kind, count in zip(machine.kinds, counts.tolist(), strict=True):
        needed = sum(cycles(kind, work) for work in works if work.macs)
        rate += count * kind.clock_hz / max(needed, 1)
    return rate


def host_bound(network: Network, machine: Machine) -> float | None:
    """Return images a second that the host's port lets in and out; None without a host."""
    if machine.host is None:
        return None
    sides = (network.inputs, network.outputs)
    return machine.host.bytes_per_s / max(
        1, *(sum(network.tensors[index].size_bytes for index in side) for side in sides)
    )
