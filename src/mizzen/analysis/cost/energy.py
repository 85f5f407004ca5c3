"""The energy of an inference: what its time, products and bytes take by a board's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.report.cost import CostReport
from mizzen.report.energy import EnergyFigure, InferenceEnergy

IDLE, MAC = "idle", "mac"
MEMORIES: Mapping[str, str] = {
    "Sram": "sram", "OnChipFlash": "flash", "OffChipFlash": "flash", "Dram": "dram",
}  # fmt: skip
"""Figures by the memories of `vela.ini`."""

PJ_IN_MJ = 1e9


def energy_of(cost: CostReport, figures: Sequence[EnergyFigure]) -> InferenceEnergy | None:
    """Return what an inference takes; None where a figure of it is not known.

    No figure says what a core takes besides idling: with operators on the CPU nothing is told.
    """
    known = {figure.of: figure for figure in figures}
    needed = _amounts(cost)
    if not needed or cost.cpu_cycles or not needed.keys() <= known.keys():
        return None
    parts = {of: known[of].value * amount for of, amount in needed.items()}
    return InferenceEnergy(
        mj=sum(parts.values()),
        low_mj=sum(part / known[of].error for of, part in parts.items()),
        high_mj=sum(part * known[of].error for of, part in parts.items()),
        parts_mj=parts,
        sources=tuple(dict.fromkeys(known[of].source for of in parts)),
    )


def _amounts(cost: CostReport) -> dict[str, float]:
    """Return what figures are multiplied with to be mJ: s of mW, and 1e-9 of what takes pJ."""
    macs = sum(operation.macs for operation in cost.operations)
    amounts = {IDLE: cost.time.seconds, MAC: macs / PJ_IN_MJ}
    for traffic in cost.traffic:
        memory = MEMORIES.get(traffic.memory, traffic.memory)
        bytes_ = traffic.read_bytes + traffic.written_bytes
        amounts[memory] = amounts.get(memory, 0.0) + bytes_ / PJ_IN_MJ
    return {of: amount for of, amount in amounts.items() if amount}
