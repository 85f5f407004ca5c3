"""The energy of an inference is the sum of its time, products and bytes by a board's figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.analysis.cost.energy import energy_of
from mizzen.boards import find_board
from mizzen.boards.board import EnergyOf
from mizzen.diagnostics import Device
from mizzen.report.cost import Bound, CostReport, OperationCost, Purpose, Traffic
from mizzen.report.energy import EnergyFigure

IDLE = EnergyFigure("idle", 100.0, 1.25, "a meter")
MAC = EnergyFigure("mac", 0.5, 2.0, "a trace")
SRAM = EnergyFigure("sram", 20.0, 4.0, "a trace")
FLASH = EnergyFigure("flash", 1000.0, 1.0, "a data sheet")
OPERATION = OperationCost(
    step=0,
    index=0,
    name="OP_CONV",
    device=Device.NPU,
    origin=None,
    start_cycles=0,
    end_cycles=400_000,
    cycles=400_000,
    causes={Bound.MAC: 400_000},
    macs=10_000_000,
    traffic=(
        Traffic("Sram", "Axi0", Purpose.FEATURE_MAP, 150_000, 50_000),
        Traffic("Sram", "Axi0", Purpose.WEIGHTS, 50_000, 0),
    ),
)
COST = CostReport("a network", {}, 400e6, "", (OPERATION,))


def test_a_millisecond_ten_million_products_and_a_quarter_of_a_megabyte() -> None:
    """100 mW for 1 ms, 10e6 times 0.5 pJ, 250e3 times 20 pJ."""
    energy = energy_of(COST, (IDLE, MAC, SRAM))
    assert energy is not None
    assert energy.parts_mj == pytest.approx({"idle": 0.1, "mac": 0.005, "sram": 0.005})
    assert energy.mj == pytest.approx(0.11)
    assert energy.low_mj == pytest.approx(0.1 / 1.25 + 0.005 / 2 + 0.005 / 4)
    assert energy.high_mj == pytest.approx(0.1 * 1.25 + 0.005 * 2 + 0.005 * 4)
    assert energy.sources == ("a meter", "a trace")


def test_a_figure_that_nothing_needs_is_not_named() -> None:
    energy = energy_of(COST, (IDLE, MAC, SRAM, FLASH))
    assert energy is not None
    assert "a data sheet" not in energy.sources


@pytest.mark.parametrize("missing", [IDLE, MAC, SRAM])
def test_nothing_is_told_where_a_figure_is_missing(missing: EnergyFigure) -> None:
    known = [each for each in (IDLE, MAC, SRAM) if each is not missing]
    assert energy_of(COST, known) is None


def test_nothing_is_told_of_flash_that_nobody_measured() -> None:
    flash = Traffic("OffChipFlash", "Axi1", Purpose.WEIGHTS, 1, 0)
    other = replace(OPERATION, traffic=(*OPERATION.traffic, flash))
    cost = replace(COST, operations=(other,))
    assert energy_of(cost, (IDLE, MAC, SRAM)) is None
    assert energy_of(cost, (IDLE, MAC, SRAM, FLASH)) is not None


def test_nothing_is_told_where_a_core_computes() -> None:
    on_cpu = replace(OPERATION, device=Device.CPU, causes={Bound.CPU: 400_000})
    assert energy_of(replace(COST, operations=(OPERATION, on_cpu)), (IDLE, MAC, SRAM)) is None


def test_the_figures_of_wise_eye_2_are_those_of_its_trace() -> None:
    """One factor on the ratio of a product to a byte gives what the trace has above idling."""
    figures = {each.of: each.value for each in find_board("himax_we2").energy}
    samples_mw = (100.94, 101.10, 100.91, 100.54, 101.63, 100.75, 102.87, 109.17, 108.63, 109.73)
    above_idle_mj = sum(each - figures[EnergyOf.IDLE] for each in samples_mw) * 0.2e-3
    products, bytes_ = 21.22e6, 1.3686e6
    factor = above_idle_mj * 1e9 / (0.3 * products + 12.5 * bytes_)
    assert figures[EnergyOf.MAC] == pytest.approx(0.3 * factor, rel=0.01)
    assert figures[EnergyOf.SRAM] == pytest.approx(12.5 * factor, rel=0.01)
