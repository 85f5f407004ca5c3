"""Bounds that exclude each other: the one that would leave no number stays on the CPU."""

from __future__ import annotations

from mizzen.compiler.ethos_n.regions import EthosNRegions
from mizzen.compiler.placement import place
from mizzen.compiler.proof.options import OFF
from mizzen.partition import Device

from .graphs import FOUR_TOPS, Net


def test_the_other_operators_are_compiled() -> None:
    net = Net()
    x = net.conv(net.input(1, 8, 8, 16), 16, q=(0.05, 3))
    excluded = net.clamp(net.clamp(x, -50, 20), 21, 90)
    net.outputs(net.conv(excluded, 16))
    compiler = EthosNRegions(FOUR_TOPS, inline=False)
    placed = place(net.graph, compiler.legality(net.graph), lambda row: False, compiler, OFF, None)
    on_cpu = [row for row in placed.partition.regions if row.device is Device.CPU]
    assert [row.groups for row in on_cpu] == [(2,)]
    (reason,) = placed.partition.groups[2].reasons
    assert reason.message == (
        "Relu must keep some of the numbers -50 to 20 that its input can have, and keeps 21 to 90"
    )
    assert reason.help == "leave the operation to the CPU, or correct its bounds"
    assert sorted(placed.code) == [(0, 1), (3,)]
