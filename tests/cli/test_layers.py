"""The table of layers: more columns and whole names where there is room, advice once."""

from __future__ import annotations

import pytest

from mizzen.cli.layers import cliff_text, layers_text
from mizzen.cli.layout import name_in
from mizzen.diagnostics import Device
from mizzen.report.advice import Advice, Measured
from mizzen.report.cliffs import Cliff, Neighbour
from mizzen.report.cost import Bound
from mizzen.report.layers import Layer

LONG = "block/Relu;block/BatchNorm/FusedBatchNormV3;block/BiasAdd;block/Conv2D"


def layer(index: int | None, cycles: int, name: str) -> Layer:
    return Layer(
        index, "CONV_2D", name, Device.NPU, 2_000_000, cycles, cycles / 400, {Bound.FLASH: cycles},
        0.345, 2048, "4x4x8 -> 4x4x16", (index or 0,),
    )  # fmt: skip


ROWS = (layer(0, 300, LONG), layer(1, 100, "out"))
BEFORE = Measured(100, 1, 2)
ADVICE = (
    Advice("--memory-mode Sram_Only", None, "", Measured(400, 10, 90), Measured(300, 100, 0)),
    Advice(
        "48 output channels instead of 60", 1, "CONV_2D", Measured(100, 1, 2), Measured(60, 1, 1)
    ),
)


def test_on_a_narrow_terminal() -> None:
    assert layers_text(ROWS, ADVICE, "Cycles mean this.", width=80) == (
        "Layers (cycles are estimates)\n"
        "  #  type     on   cycles   share  bound  output\n"
        "  0  CONV_2D  NPU     300  75.0 %  flash  block/Relu\n"
        "  1  CONV_2D  NPU     100  25.0 %  flash  out\n"
        "  Cycles mean this.\n"
        "\n"
        "What would make it cheaper, as tried\n"
        "  --memory-mode Sram_Only: 300 cycles instead of 400 (25 % fewer), 100 bytes of\n"
        "  SRAM instead of 10, 0 bytes of flash instead of 90\n"
        "  1 CONV_2D, 48 output channels instead of 60: 60 cycles by itself instead of\n"
        "  100 (40 % fewer)"
    )


def test_on_a_wide_terminal() -> None:
    text = layers_text(ROWS, width=200)
    heading, first = text.split("\n")[1:3]
    assert " ".join(heading.split()) == (
        "# type on MACs cycles share MAC use bound SRAM shapes output"
    )
    assert "2,000,000" in first
    assert "34 %" in first  # to even
    assert "2.0 KiB" in first
    assert "4x4x8 -> 4x4x16" in first
    assert first.endswith(LONG)


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        (LONG, len(LONG), LONG),
        (LONG, len(LONG) - 1, "block/Relu"),
        ("a/very/long/name/of/a/layer", 12, "...f/a/layer"),
    ],
)
def test_names(name: str, room: int, shown: str) -> None:
    assert name_in(name, room) == shown


def test_a_cliff() -> None:
    rows = (Neighbour(16, 500, 1024, 64), Neighbour(17, 1000, 2048, 96))
    found = Cliff(3, "CONV_2D", "out", "output channels", 17, rows)
    assert cliff_text(found, width=80) == (
        "Layer 3 CONV_2D alone, output channels around its 17\n"
        "  output channels  cycles  ratio     SRAM  constants\n"
        "  16                  500   0.50  1.0 KiB  64 bytes\n"
        "  17  <             1,000   1.00  2.0 KiB  96 bytes\n"
        "  16 output channels would take 50 % fewer cycles"
    )
