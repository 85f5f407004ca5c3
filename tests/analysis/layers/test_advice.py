"""Advice: said of what mostly waits for something, and takes time worth speaking of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.analysis.layers.advice import advice
from mizzen.diagnostics import Device
from mizzen.report.cost import Bound, OperationCost, Purpose, Traffic


def operation(
    name: str, cycles: int, channels: tuple[int, int], paid: tuple[int, int]
) -> OperationCost:
    return OperationCost(
        0, 0, name, Device.NPU, None, 0, cycles, cycles, {}, channels=channels, paid_channels=paid
    )


CONV = operation("OP_CONV", 100, (3, 17), (8, 24))
FULL = operation("OP_CONV", 100, (8, 16), (8, 16))
ONE = operation("OP_CONV", 100, (1, 16), (8, 16))


@pytest.mark.parametrize(
    ("row", "causes", "said"),
    [
        (
            CONV,
            {Bound.ROUNDING: 60, Bound.MAC: 40},
            "3 input channels take the array the time of 8; 17 output channels take the array the "
            "time of 24",
        ),
        (
            ONE,
            {Bound.ROUNDING: 40, Bound.FILL: 30},
            "1 input channel takes the array the time of 8",
        ),
        (ONE, {Bound.ROUNDING: 40, Bound.FILL: 50}, ""),
        (FULL, {Bound.ROUNDING: 60, Bound.MAC: 40}, ""),
        (CONV, {Bound.ROUNDING: 39, Bound.MAC: 31, Bound.FILL: 30}, ""),
        (
            replace(CONV, traffic=(Traffic("OffChipFlash", "Axi1", Purpose.WEIGHTS, 9, 0),)),
            {Bound.FLASH: 51, Bound.ROUNDING: 49},
            "mostly waiting for flash: have the constants in SRAM (--memory-mode Sram_Only) if "
            "they fit, or fewer weights",
        ),
        (
            CONV,
            {Bound.FLASH: 51, Bound.ROUNDING: 49},
            "mostly waiting for flash, for commands and lookup tables: have the constants in SRAM "
            "(--memory-mode Sram_Only) if they fit",
        ),
        (
            replace(
                CONV,
                traffic=(
                    Traffic("Dram", "Axi1", Purpose.WEIGHTS, 9, 0),
                    Traffic("Dram", "Axi1", Purpose.FEATURE_MAP, 5, 6),
                    Traffic("Sram", "Axi0", Purpose.COMMANDS, 99, 0),
                ),
            ),
            {Bound.DRAM: 51, Bound.ROUNDING: 49},
            "mostly waiting for DRAM, most of all for: feature map",
        ),
        (CONV, {Bound.DRAM: 51, Bound.ROUNDING: 49}, "mostly waiting for DRAM"),
    ],
)
def test_what_is_said(row: OperationCost, causes: dict[Bound, int], said: str) -> None:
    assert advice([row], causes, 0.5) == said


def test_nothing_is_said_of_what_takes_little_time() -> None:
    assert advice([CONV], {Bound.FLASH: 100}, 0.049) == ""
    assert advice([], {}, 0.0) == ""


def test_a_depthwise_convolution() -> None:
    row = operation("OP_DEPTHWISE", 100, (8, 8), (8, 8))
    assert "takes one input channel for each output" in advice([row], {Bound.ROUNDING: 9}, 0.1)
