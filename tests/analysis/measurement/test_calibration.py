"""Counts of a board whose memories are known: what is matched, what the fit finds, what it says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mizzen.analysis.cost.reporting import configuration_of
from mizzen.analysis.measurement.calibration import Calibration, Log, Run, calibrate, read_log
from mizzen.analysis.measurement.fitting import LARGEST_FACTOR, Sample, fit, mean_error, worst
from mizzen.analysis.measurement.memories import Quantity, parameters, with_values
from mizzen.analysis.measurement.reading import MOST_MEASUREMENTS, read_measurements
from mizzen.analysis.measurement.samples import match
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.timing import cycles_of, steps_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Memory
from mizzen.targets.ethos_u.machine.system_config import resolve

FLASH_RATE, FLASH_LATENCY = 0.4, 150.0
TIMER = 0.25


def slow(system: EthosUConfiguration) -> EthosUConfiguration:
    """Return a system with another flash."""
    known = parameters(system, timer=False)
    flash = {Quantity.RATE: FLASH_RATE, Quantity.LATENCY: FLASH_LATENCY}
    values = [
        flash[each.quantity] if each.memory is Memory.OFF_CHIP_FLASH else each.before
        for each in known
    ]
    return with_values(system, known, values)


def counted(artifact: Artifact, board: EthosUConfiguration) -> list[float]:
    """Return what each part takes on a board."""
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    return [cycles_of(steps_of(step.program), board) for step in steps]


def lines(cycles: list[float], inferences: int = 2) -> Iterator[str]:
    for number in range(1, inferences + 1):
        for part, each in enumerate(cycles, 1):
            yield (
                f"mizzen-counters: inference {number}, part {part} of {len(cycles)}, "
                f"cycles {round(each)}"
            )


def of(artifact: Artifact, system: EthosUConfiguration, text: str) -> Calibration:
    return calibrate([Run(artifact, (read_log("uart.log", text.encode()),))], system)


@pytest.fixture(scope="module")
def found(parts: Artifact, system: EthosUConfiguration) -> Calibration:
    return of(parts, system, "\n".join(lines(counted(parts, slow(system)))))


def test_counts_of_parts_tell_which_memory_is_slow(found: Calibration) -> None:
    told = {(each.parameter.memory, each.parameter.quantity): each for each in found.fit.told}
    rate = told[Memory.OFF_CHIP_FLASH, Quantity.RATE]
    assert rate.value == pytest.approx(FLASH_RATE, rel=rate.error - 1)
    assert rate.error < 1.1
    truths = {Quantity.RATE: FLASH_RATE, Quantity.LATENCY: FLASH_LATENCY}
    for each in told.values():  # within two errors, as one number stands for another
        known = each.parameter
        truth = known.before if known.memory is Memory.SRAM else truths[known.quantity]
        assert truth / each.error**2 < each.value < truth * each.error**2
    assert (Memory.SRAM, Quantity.RATE) not in told
    assert mean_error(found.fit.after) < 0.01 < mean_error(found.fit.before)
    assert not found.failures


def test_what_is_measured_names_its_log_and_its_counts(found: Calibration, parts: Artifact) -> None:
    measured = found.measured()
    assert measured is not None
    assert measured.source == (
        f"uart.log (sha256 {found.logs[0].digest[:16]}): 6 counts of {parts.name}"
    )
    flash = {memory.name: memory for memory in measured.memories}["OffChipFlash"]
    assert flash.bytes_per_cycle == pytest.approx(FLASH_RATE, rel=0.05)


def test_a_number_that_the_counts_do_not_tell_stays_as_it_was(found: Calibration) -> None:
    for each in found.fit.fitted:
        if not each.told:
            assert each.value == each.parameter.before
            assert each.error > 2


def test_ticks_of_another_clock_are_told_apart_from_memories(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    names = ("ethos-u", "DEPTHWISE_CONV_2D", "ethos-u", "MAX_POOL_2D", "ethos-u")
    cycles = iter(counted(parts, system))
    ticks = [round(next(cycles) * TIMER) if name == "ethos-u" else 1000 for name in names]
    rows = [f"{name} took {each} ticks (0 ms)." for name, each in zip(names, ticks, strict=True)]
    seen = of(parts, system, "\n".join(rows * 2))
    timer = seen.fit.fitted[-1]
    assert timer.parameter.quantity is Quantity.TIMER
    assert timer.told
    assert timer.value == pytest.approx(TIMER, rel=0.01)
    assert [(each.name, each.ticks, each.inferences) for each in seen.cpu] == [
        ("DEPTHWISE_CONV_2D", 1000, 2), ("MAX_POOL_2D", 1000, 2),
    ]  # fmt: skip
    assert all(each.estimate > 0 for each in seen.cpu)


def test_a_physical_bound_holds(parts: Artifact, system: EthosUConfiguration) -> None:
    seen = of(parts, system, "\n".join(lines([each / 4 for each in counted(parts, system)])))
    for each in seen.fit.fitted:
        assert each.parameter.least <= each.value <= each.parameter.most
    assert [failure.code for failure in seen.failures] == ["E745"]
    assert re.fullmatch(
        "estimates with the fitted memories must be within 10% of the counts in the median, and "
        r"are off by \d+\.\d%: memories alone do not explain them",
        seen.failures[0].message,
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_number_of_a_fit_is_infinite_whatever_the_counts_are(
    parts: Artifact, system: EthosUConfiguration, seed: int
) -> None:
    """From near the estimate to 20 digits, of parts and of all, in cycles and in ticks."""
    random = np.random.default_rng(seed)
    steps = [steps_of(step.program) for step in parts.steps if isinstance(step, NpuStep)]
    usual, span = sum(counted(parts, system)), (0.5, 3.0, 30.0)[seed % 3]
    samples = [
        Sample(
            "count",
            (steps[random.integers(3)],),
            min(max(1.0, usual * math.exp(random.uniform(-span, span))), 1e20),
            float(random.choice([0.0, 0.1, 100.0])),
            in_ticks=bool(random.integers(4) == 0),
        )
        for _ in range(1 + seed // 3 * 3)
    ]
    with np.errstate(all="raise"):
        found = fit(system, samples)
    held = () if found.held_out is None else (*found.held_out.before, *found.held_out.after)
    assert all(map(math.isfinite, (*found.before, *found.after, *held)))
    for each in found.fitted:
        assert each.parameter.least <= each.value <= each.parameter.most
        assert 1 <= each.error <= LARGEST_FACTOR


@pytest.mark.parametrize("cycles", [16_900, 20_900, 21_000, 33_000])
def test_a_rate_that_is_nearly_the_widest_has_a_slope(whole: Artifact, cycles: int) -> None:
    """A step up to the bound is too small there to divide by."""
    system = configuration_of(whole, None)
    assert system is not None
    seen = of(whole, system, f"INFO - NPU ACTIVE cycles: {cycles}\n")
    assert seen.fit.after == pytest.approx((1.0,), abs=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "INFO - NPU ACTIVE cycles: 0\nINFO - NPU IDLE cycles: 80\nINFO - NPU total cycles: 90",
        "mizzen-counters: inference 1, cycles 0",
        "ethos-u took 0 ticks (0 ms).",
        "Tick for Invoke for NET:[0]",
        f"ethosu_pmu_cycle_cntr : 1 (0.{'0' * 400}1 per inference)",
    ],
    ids=["kit", "lines", "profile", "processor", "hardly"],
)
def test_a_counter_that_did_not_run_is_refused(whole: Artifact, text: str) -> None:
    system = configuration_of(whole, None)
    assert system is not None
    with pytest.raises(MizzenError) as caught:
        of(whole, system, text)
    assert str(caught.value) == (
        "error[E744]: a count of the NPU's work must be 1 cycle or more, and the log has only 0 "
        f"for {whole.name}\n  help did the NPU run, and was its counter started before it?"
    )


def test_several_inferences_say_how_far_they_spread(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    text = "".join(f"mizzen-counters: inference 1, cycles {n}\n" for n in (30_000, 33_000, 27_000))
    (sample,) = match(parts, read_measurements(text), system).samples
    assert (sample.name, sample.measured, sample.inferences) == ("inference", 30_000, 3)
    assert sample.spread == pytest.approx(0.1)
    assert len(sample.steps) == 3


def test_several_artifacts_are_fitted_together(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    rows = list(lines(counted(parts, slow(system)), 1))
    logs = [read_log(f"{n}.log", "\n".join(rows).encode()) for n in range(2)]
    both = calibrate([Run(parts, (log,)) for log in logs], system)
    assert [sample.name for sample in both.fit.samples][::3] == ["digits_vela, part 1: CONV_2D"] * 2
    assert both.fit.held_out is not None
    measured = both.measured()
    assert measured is not None
    assert measured.source.endswith("6 counts of digits_vela.tflite, digits_vela.tflite")


def test_beats_of_another_program_are_doubted(parts: Artifact, system: EthosUConfiguration) -> None:
    event = "AXI1_RD_DATA_BEAT_RECEIVED"
    text = f"mizzen-counters: inference 1, cycles 40000, {event} 9000\n"
    (doubt,) = of(parts, system, text).diagnostics
    assert doubt.code == "W352"
    assert f"{event} 9,000 instead of 1,505" in doubt.message


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("booting", "E740", "uart.log must have what an inference took, in a form that Mizzen"),
        ("0" * 20, "E740", "uart.log must have what an inference took"),
        (
            "ethos-u took 5 ticks (0 ms).\nSOFTMAX took 5 ticks (0 ms).",
            "E742",
            "a profile must have the artifact's operators in their order, ethos-u, "
            "DEPTHWISE_CONV_2D, ethos-u, MAX_POOL_2D, ethos-u, and line 1 has ethos-u, SOFTMAX",
        ),
        (
            "mizzen-counters: inference 1, part 1 of 17, cycles 9",
            "E743",
            "the log must be of the artifact's 3 parts, and line 1 is of part 1 of 17",
        ),
        (
            "Tick for Invoke for NET:[9400]",
            "E744",
            "a count must be of the NPU's work, and the log has only the processor's for",
        ),
    ],
    ids=["nothing", "digits", "profile", "parts", "processor"],
)
def test_what_does_not_match_is_refused(
    parts: Artifact, system: EthosUConfiguration, text: str, code: str, said: str
) -> None:
    with pytest.raises(MizzenError) as caught:
        of(parts, system, text)
    assert caught.value.diagnostic.code == code
    assert said in caught.value.diagnostic.message


def test_a_log_of_many_mebibytes_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        read_log("uart.log", bytes(65 << 20))
    assert str(caught.value).startswith(
        "error[E746]: a log must have at most 64 MiB, and uart.log has 65\n"
    )


def test_counts_that_are_held_out_say_whether_the_fit_is_better(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    steps = [steps_of(step.program) for step in parts.steps if isinstance(step, NpuStep)]
    board = slow(system)
    samples = [
        Sample(f"{place}", (each,), cycles_of(each, board))
        for place, each in enumerate((*steps, *steps))
    ]
    held = fit(system, samples).held_out
    assert held is not None
    assert held.better
    assert mean_error(held.before) > 0.5
    noise = [replace(sample, measured=sample.measured * (1 + place % 2)) for place, sample in
             enumerate(samples)]  # fmt: skip
    worse = fit(board, noise).held_out
    assert worse is not None
    assert not worse.better


@pytest.mark.parametrize("in_ticks", [(0, 2, 4), (1,)], ids=["several", "one"])
def test_both_halves_have_counts_in_ticks_or_none(
    parts: Artifact, system: EthosUConfiguration, in_ticks: tuple[int, ...]
) -> None:
    """Else one has a timer whose rate nothing tells."""
    steps = [steps_of(step.program) for step in parts.steps if isinstance(step, NpuStep)]
    counts = [(each, cycles_of(each, system)) for each in (*steps, *steps)]
    samples = [
        Sample(f"{place}", (each,), cycles * TIMER if place in in_ticks else cycles,
               in_ticks=place in in_ticks)
        for place, (each, cycles) in enumerate(counts)
    ]  # fmt: skip
    held = fit(system, samples).held_out
    assert held is not None
    assert len(held.after) == len(samples) - (len(in_ticks) == 1)
    assert mean_error(held.before) < 0.01
    assert mean_error(held.after) < 0.05


def test_a_number_that_may_be_anything_has_no_factor_in_the_document(found: Calibration) -> None:
    loose = tuple(replace(each, told=True, error=LARGEST_FACTOR) for each in found.fit.fitted)
    document = replace(found, fit=replace(found.fit, fitted=loose)).as_dict()
    assert '"error_factor": null' in json.dumps(document, allow_nan=False)


def test_reads_and_writes_keep_their_ratio() -> None:
    system = resolve("ethos-u85-256")
    known = parameters(system, timer=False)
    values = [64.0 if each.quantity is Quantity.LATENCY else each.before for each in known]
    for timing in (with_values(system, known, values).system.axi1, system.system.axi1):
        assert timing.write_latency_cycles == pytest.approx(timing.read_latency_cycles / 2, abs=1)


def test_logs_are_told_apart_by_their_bytes() -> None:
    text = b"NPU TOTAL: 9 cycles"
    one, other = (read_log("a", data) for data in (text, text + b"\n"))
    assert one.measurements == other.measurements
    assert one.digest != other.digest
    assert isinstance(one, Log)


def test_a_fit_that_is_no_better_than_none_is_doubted(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    """Of each part one count is twice the other, so that no memories explain both."""
    cycles = counted(parts, system)
    runs = [
        Run(parts, (read_log("uart.log", "\n".join(lines(noisy, 1)).encode()),))
        for noisy in (
            [each * (1 + (place + odd) % 2) for place, each in enumerate(cycles)] for odd in (0, 1)
        )
    ]
    seen = calibrate(runs, system)
    doubts = [doubt for doubt in seen.diagnostics if doubt.code == "W353"]
    assert [doubt.message for doubt in doubts] == [
        "fitted memories should estimate counts that were held out better than those of "
        "Ethos_U55_High_End_Embedded, and do not"
    ]


def test_estimates_that_were_exact_already_are_not_doubted(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    steps = [steps_of(step.program) for step in parts.steps if isinstance(step, NpuStep)]
    text = "\n".join(lines(counted(parts, system)))
    runs = [Run(parts, (read_log("uart.log", text.encode()),))] * 2
    seen = calibrate(runs, system)
    assert len(seen.fit.samples) == 2 * len(steps)
    assert seen.fit.told
    assert worst(seen.judged) < 0.0005
    assert seen.diagnostics == ()


def test_of_a_log_without_end_the_first_measurements_are_read(
    parts: Artifact, system: EthosUConfiguration
) -> None:
    line = f"mizzen-counters: inference 1, cycles {round(sum(counted(parts, system)))}\n"
    seen = of(parts, system, line * (MOST_MEASUREMENTS + 1))
    assert [doubt.message for doubt in seen.diagnostics] == [
        "of uart.log the first 10,000 measurements are read, and it has more"
    ]
    assert seen.counts == MOST_MEASUREMENTS
