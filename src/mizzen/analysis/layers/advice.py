"""Advice: what would make a layer cheaper, where what bounds it says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mizzen.report.cost import Bound, OperationCost, Purpose

LEAST_SHARE = 0.05
"""Layers that take less of the time are not worth advice."""
LEAST_CAUSE = 0.4
"""Share of a layer's time that a cause must have."""

DEPTHWISE = "OP_DEPTHWISE"
DRAM = "Dram"
"""As `vela.ini` calls it."""


def advice(operations: Sequence[OperationCost], causes: Mapping[Bound, int], share: float) -> str:
    """Return advice on making a layer cheaper; empty where no rule has anything to say.

    share  of the layer in the inference's cycles
    """
    cycles = sum(causes.values())
    if share < LEAST_SHARE or not cycles:
        return ""
    bound = max(causes, key=lambda cause: causes[cause])
    rule = RULES.get(bound)
    return rule(operations) if rule and causes[bound] >= LEAST_CAUSE * cycles else ""


def _flash(operations: Sequence[OperationCost]) -> str:
    purposes = {part.purpose for operation in operations for part in operation.traffic}
    if purposes & {Purpose.WEIGHTS, Purpose.TRANSFER}:
        return (
            "mostly waiting for flash: have the constants in SRAM (--memory-mode Sram_Only) if "
            "they fit, or fewer weights"
        )
    return (
        "mostly waiting for flash, for commands and lookup tables: have the constants in SRAM "
        "(--memory-mode Sram_Only) if they fit"
    )


def _dram(operations: Sequence[OperationCost]) -> str:
    """Say for what: whether more SRAM would help, only another compilation tells."""
    bytes_: dict[str, int] = {}
    for part in (
        part for operation in operations for part in operation.traffic if part.memory == DRAM
    ):
        moved = part.read_bytes + part.written_bytes
        bytes_[part.purpose.value] = bytes_.get(part.purpose.value, 0) + moved
    most = max(bytes_, key=lambda purpose: bytes_[purpose], default=None)
    return "mostly waiting for DRAM" + ("" if most is None else f", most of all for: {most}")


def _rounding(operations: Sequence[OperationCost]) -> str:
    dearest = max(operations, key=lambda operation: operation.cycles)
    if dearest.name == DEPTHWISE:
        return (
            "a depthwise convolution takes one input channel for each output, where the array "
            "takes 8, and leaves most of it idle"
        )
    if dearest.channels is None or dearest.paid_channels is None:
        return ""
    told = [
        f"{has} {side} {'channel takes' if has == 1 else 'channels take'} the array the time of "
        f"{paid}"
        for has, paid, side in zip(
            dearest.channels, dearest.paid_channels, ("input", "output"), strict=True
        )
        if paid > has
    ]
    return "; ".join(told)


RULES: dict[Bound, Callable[[Sequence[OperationCost]], str]] = {
    Bound.FLASH: _flash,
    Bound.DRAM: _dram,
    Bound.ROUNDING: _rounding,
}
"""What is said of a layer that mostly waits for something."""
