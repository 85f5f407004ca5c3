"""Cliffs: what follows from a layer's neighbours, in a sentence."""

from __future__ import annotations

import pytest

from mizzen.report.cliffs import Cliff, Neighbour


def cliff(channels: int, *rows: tuple[int, int, int]) -> Cliff:
    found = tuple(Neighbour(*row, flash_bytes=1) for row in rows)
    return Cliff(3, "CONV_2D", "out", "output channels", channels, found)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            cliff(17, (16, 500, 8), (17, 1000, 16), (24, 1010, 16), (32, 1500, 16)),
            "17 output channels take the cycles that 24 do; "
            "16 output channels would take 50 % fewer cycles",
        ),
        (
            cliff(17, (16, 950, 8), (17, 1000, 16), (24, 1010, 32)),
            "17 output channels take the cycles that 24 do, with less SRAM",
        ),
        (cliff(16, (8, 500, 8), (15, 1000, 16), (16, 1000, 16), (17, 1100, 17)), ""),
    ],
)
def test_advice(found: Cliff, said: str) -> None:
    assert found.advice == said


def test_json() -> None:
    document = cliff(2, (1, 5, 6), (2, 7, 8)).as_dict()
    assert document["neighbours"] == [
        {"channels": 1, "cycles": 5, "sram_bytes": 6, "flash_bytes": 1},
        {"channels": 2, "cycles": 7, "sram_bytes": 8, "flash_bytes": 1},
    ]
