"""Logs of each public form: which figures are read, and of what."""

from __future__ import annotations

from pathlib import Path

import pytest

from mizzen.analysis.log_text import LONGEST_LINE
from mizzen.analysis.measurement.formats import ROWS, Format
from mizzen.analysis.measurement.reading import (
    MOST_MEASUREMENTS,
    Measurement,
    OperatorTime,
    read_measurements,
)

from .logs import TEXTS

ROOT = Path(__file__).resolve().parents[3]
READS = "AXI0_RD_DATA_BEAT_RECEIVED"
IN_TICKS = (OperatorTime("ethos-u", 9300, True), OperatorTime("SOFTMAX", 3300, False))

READ: dict[Format, tuple[Measurement, ...]] = {
    Format.MIZZEN: (
        Measurement(Format.MIZZEN, 1, (1, 2), 1200, events={"NPU_ACTIVE": 1100, READS: 90}),
        Measurement(Format.MIZZEN, 2, (2, 2), 640, events={"NPU_ACTIVE": 600, READS: 40}),
    ),
    Format.KIT: (
        Measurement(
            Format.KIT, 2, None, 9080, 30000,
            {"NPU_ACTIVE": 9000, "SRAM_RD_DATA_BEAT_RECEIVED": 700, "NPU_IDLE": 80},
        ),
    ),
    Format.KIT_OLD: (
        Measurement(Format.KIT_OLD, 1, None, 9080, events={READS: 700, "NPU_IDLE": 80}),
    ),
    Format.KIT_STATISTICS: (
        Measurement(
            Format.KIT_STATISTICS, 1, None, 9100, events={"NPU_ACTIVE": 9000}, inferences=3
        ),
    ),
    Format.EXECUTORCH: (
        Measurement(
            Format.EXECUTORCH, 1, None, 9000, 25000, {READS: 700, "NPU_IDLE": 80},
            (OperatorTime("ethos-u", 21000, True),), 2,
        ),
    ),
    Format.DELEGATES: (
        Measurement(Format.DELEGATES, 1, (1, 2), 1200, events={READS: 90}, inferences=2),
        Measurement(Format.DELEGATES, 4, (2, 2), 640, inferences=2),
    ),
    Format.INSPECTOR: (
        Measurement(
            Format.INSPECTOR, 4,
            operators=(
                OperatorTime("quantized_conv2d.out", 13754, False),
                OperatorTime("DELEGATE_CALL", 21000, True),
            ),
        ),
    ),
    Format.ZEPHYR: (
        Measurement(Format.ZEPHYR, 2, None, 9080), Measurement(Format.ZEPHYR, 5, None, 9100),
    ),
    Format.CORE_PLATFORM: (
        Measurement(
            Format.CORE_PLATFORM, 1,
            operators=(
                OperatorTime("ethos-u", 9080, True, True), OperatorTime("SOFTMAX", 3300, False),
            ),
        ),
    ),
    Format.TFLM: (Measurement(Format.TFLM, 1, operators=IN_TICKS),),
    Format.TFLM_CSV: (Measurement(Format.TFLM_CSV, 1, operators=IN_TICKS),),
    Format.TFLM_TAGS: (Measurement(Format.TFLM_TAGS, 1, operators=IN_TICKS),),
    Format.LINUX: (Measurement(Format.LINUX, 2, None, 9080),),
    Format.NXP: (Measurement(Format.NXP, 1, None, 9080),),
    Format.HIMAX: (Measurement(Format.HIMAX, 2, cpu_cycles=9400),),
}  # fmt: skip


@pytest.mark.parametrize("form", TEXTS, ids=lambda form: form.name.lower())
def test_each_form_is_read(form: Format) -> None:
    assert read_measurements(TEXTS[form]) == READ[form]


def test_every_form_of_the_table_has_a_text() -> None:
    assert {row.format for row in ROWS} == set(TEXTS)
    assert set(Format) - set(TEXTS) == {Format.ETDUMP}, "which is no text"


def test_every_row_of_the_table_matches_a_line_first() -> None:
    lines = "\n".join((*TEXTS.values(), *OLDER)).splitlines()
    first = {next((id(row) for row in ROWS if row.pattern.search(line)), 0) for line in lines}
    assert not [row.pattern.pattern for row in ROWS if id(row) not in first]


OLDER = (
    "I [executorch:arm_perf_monitor.cpp:168] ethosu_pmu_cycle_cntr : 9000",
    "I [executorch:arm_perf_monitor.cpp:171] ethosu_pmu_cntr0 : 700",
    "ethosu_pmu_cycle_cntr : 9000 cycles",
)


def test_an_executorch_of_before_counts_the_processors_cycles_for_its_operator() -> None:
    (read,) = read_measurements(
        "============ NPU Inferences : 1 ============\n"
        "ethos-u : cycle_cnt : 21000 cycles\n"
        "ethosu_pmu_cycle_cntr : 9000\n"
    )
    assert read.operators == (OperatorTime("ethos-u", 21000, True),)
    assert read.cycles == 9000


def test_the_cycles_at_work_count_where_they_are_known() -> None:
    text = TEXTS[Format.KIT_OLD]
    assert [each.npu_cycles for each in read_measurements(text)] == [9000]
    assert [each.npu_cycles for each in read_measurements(TEXTS[Format.LINUX])] == [9080]


def test_a_block_that_comes_again_is_another_inference() -> None:
    for form, text in TEXTS.items():
        once, twice = read_measurements(text), read_measurements(f"{text}noise\n{text}")
        profiles = form in (Format.TFLM, Format.INSPECTOR, Format.CORE_PLATFORM)
        if profiles:
            assert [each.name for each in twice[0].operators] == [
                each.name for each in once[0].operators
            ] * 2, form
        else:
            assert len(twice) == 2 * len(once), form


def test_colours_and_marks_before_a_text_do_not_hide_it() -> None:
    text = TEXTS[Format.ZEPHYR].replace("ethosu", "\x1b[1;32methosu")
    assert read_measurements(text) == READ[Format.ZEPHYR]


@pytest.mark.parametrize(
    "text",
    [
        "SOFTMAX, 3300",
        "0,ethos-u,9300",
        "mizzen-counters: inference 1, cycles",
        f"mizzen-counters: inference 1, cycles {'9' * 40}",
        "x" * (LONGEST_LINE + 1) + " NPU TOTAL: 3 cycles",
        "Ethos-U delegate 3 PMU cycles: 5",
    ],
    ids=range(6),
)
def test_what_is_no_measurement_is_none(text: str) -> None:
    assert not read_measurements(text)


def test_a_log_of_any_length_is_read_up_to_a_number() -> None:
    line = "mizzen-counters: inference 1, cycles 5\n"
    assert len(read_measurements(line * (MOST_MEASUREMENTS + 5))) == MOST_MEASUREMENTS


def test_the_page_lists_every_form_with_its_source() -> None:
    page = (ROOT / "docs" / "how-to" / "measure-on-your-board.md").read_text()
    assert [each for each in Format if f"| {each.title} | {each.source} |" not in page] == []
