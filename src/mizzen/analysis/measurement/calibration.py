"""What logs say of a board: counts beside estimates, and the memories that explain them best."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mizzen.analysis.log_text import decode_log
from mizzen.analysis.measurement.etdump import read_events
from mizzen.analysis.measurement.fitting import (
    LARGEST_FACTOR,
    Fit,
    Fitted,
    Sample,
    fit,
    mean_error,
    median,
    worst,
)
from mizzen.analysis.measurement.formats import Format
from mizzen.analysis.measurement.memories import Quantity
from mizzen.analysis.measurement.reading import (
    MOST_MEASUREMENTS,
    Measurement,
    read_measurements,
)
from mizzen.analysis.measurement.samples import Beats, CpuTime, match
from mizzen.artifact.artifact import Artifact
from mizzen.boards.board import Measured, MeasuredMemory
from mizzen.diagnostics import Diagnostic, Severity, fail
from mizzen.flatbuffer.etdump import is_etdump
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, MemoryTiming, Port

LARGEST_LOG_BYTES = 64 << 20
EXPLAINED = 0.1
"""Of counts, in the median: estimates further off explain nothing."""
EXACT = 0.0005
"""Of counts: what is said as 0.0 %, and needs to be no better."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log: what it is called, the digest of its bytes, and what it says."""

    name: str
    digest: str
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """An artifact that ran on the board, and its logs."""

    artifact: Artifact
    logs: tuple[Log, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Counts of artifacts beside estimates, before the memories were fitted and after.

    artifacts by their names, in order
    system    with the memories as they were before
    beats     of ports; of another program where they differ
    cpu       operators on the CPU
    """

    artifacts: tuple[str, ...]
    system: EthosUConfiguration
    logs: tuple[Log, ...]
    fit: Fit
    beats: tuple[Beats, ...]
    cpu: tuple[CpuTime, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def formats(self) -> tuple[Format, ...]:
        """The forms of text that the logs have."""
        seen = (each.format for log in self.logs for each in log.measurements)
        return tuple(dict.fromkeys(seen))

    @property
    def counts(self) -> int:
        """How many measurements were compared."""
        return sum(sample.inferences for sample in self.fit.samples)

    @property
    def judged(self) -> tuple[float, ...]:
        """Estimates over counts that tell whether the fit is good: held out, where there are."""
        held = self.fit.held_out
        return self.fit.after if held is None else held.after

    @property
    def failures(self) -> tuple[Diagnostic, ...]:
        """What does not hold: that the memories explain the counts."""
        off = median(self.judged)
        if off <= EXPLAINED:
            return ()
        return (
            Diagnostic(
                "E745",
                f"estimates with the fitted memories must be within {EXPLAINED:.0%} of the counts "
                f"in the median, and are off by {off:.1%}: memories alone do not explain them",
                help="look at the counts that are furthest off; is the artifact the one that ran, "
                "and has nothing else used its memories meanwhile?",
            ),
        )

    def measured(self) -> Measured | None:
        """Return what the counts tell of the memories; None where they tell nothing."""
        memories = tuple(_memories(self.fit))
        if not any(each.rate_error or each.latency_error for each in memories):
            return None
        logs = ", ".join(f"{log.name} (sha256 {log.digest[:16]})" for log in self.logs)
        return Measured(
            self.system.accelerator.name,
            self.system.system.name,
            f"{logs}: {self.counts} counts of {', '.join(self.artifacts)}",
            memories,
        )

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        held = self.fit.held_out
        return {
            "artifacts": list(self.artifacts),
            "accelerator": self.system.accelerator.name,
            "system_config": self.system.system.name,
            "memory_mode": self.system.mode.name,
            "logs": [
                {"name": log.name, "sha256": log.digest, "measurements": len(log.measurements)}
                for log in self.logs
            ],
            "formats": [each.title for each in self.formats],
            "parameters": [_parameter(each) for each in self.fit.fitted],
            "deviation": {
                "before": _deviation(self.fit.before),
                "after": _deviation(self.fit.after),
                "held_out_before": None if held is None else _deviation(held.before),
                "held_out_after": None if held is None else _deviation(held.after),
            },
            "counts": [
                {
                    "name": sample.name,
                    "measured": sample.measured,
                    "unit": "ticks" if sample.in_ticks else "cycles",
                    "inferences": sample.inferences,
                    "spread": sample.spread,
                    "before": before,
                    "after": after,
                }
                for sample, before, after in zip(
                    self.fit.samples, self.fit.before, self.fit.after, strict=True
                )
            ],
            "beats": [
                {"event": each.event, "counted": each.counted, "expected": each.expected}
                for each in self.beats
            ],
            "cpu_operators": [
                {
                    "name": each.name,
                    "ticks": each.ticks,
                    "estimate": each.estimate,
                    "inferences": each.inferences,
                }
                for each in self.cpu
            ],
        }


def _deviation(ratios: Sequence[float]) -> dict[str, float]:
    return {"median": median(ratios), "worst": worst(ratios)}


def _parameter(each: Fitted) -> dict[str, object]:
    memory = each.parameter.memory
    return {
        "memory": None if memory is None else memory.value,
        "quantity": each.parameter.quantity.value,
        "before": each.parameter.before,
        "value": each.value,
        "known": each.told,
        "error_factor": each.error if each.told and each.error < LARGEST_FACTOR else None,
        "at_bound": each.at_bound,
    }


def _memories(fit: Fit) -> Iterator[MeasuredMemory]:
    configuration = fit.configuration
    width = configuration.accelerator.traits.axi_bytes_per_cycle
    errors = {(each.parameter.memory, each.parameter.quantity): each.error for each in fit.told}
    told = {memory for memory, _ in errors}
    timings: dict[str, MemoryTiming] = {}
    for timing in map(configuration.system.behind, Port):
        if timing.memory in told:
            timings[timing.memory.value] = timing
    for name, timing in timings.items():
        yield MeasuredMemory(
            name,
            timing.clock_scale * width * timing.ports,
            timing.read_latency_cycles,
            timing.write_latency_cycles,
            errors.get((timing.memory, Quantity.RATE)),
            errors.get((timing.memory, Quantity.LATENCY)),
        )


def read_log(name: str, data: bytes) -> Log:
    """Read a log, or an ETDump.

    E740 for one that no measurement is in, E746 for one that is too long, E102 for a damaged dump.
    """
    if len(data) > LARGEST_LOG_BYTES:
        raise fail(
            "E746",
            f"a log must have at most {LARGEST_LOG_BYTES >> 20} MiB, and {name} has "
            f"{len(data) >> 20}",
            help="give the part with the counters",
        )
    if is_etdump(data):
        measurements = read_events(data, name)
    else:
        measurements = read_measurements(decode_log(data))
    if not measurements:
        raise fail(
            "E740",
            f"{name} must have what an inference took, in a form that Mizzen reads, and has none",
            help="the forms are in docs/how-to/measure-on-your-board.md; firmware that "
            "`mizzen compile --instrument` makes prints one",
        )
    return Log(name, hashlib.sha256(data).hexdigest(), measurements)


def calibrate(runs: Sequence[Run], system: EthosUConfiguration) -> Calibration:
    """Compare counts with estimates, and fit the memories of a system to them.

    system  that all of the artifacts ran in

    Raises E741 to E744 as `samples.match`, E570 for an artifact for another accelerator.
    """
    samples: list[Sample] = []
    beats: list[Beats] = []
    cpu: list[CpuTime] = []
    doubts: list[Diagnostic] = []
    for run in runs:
        measurements = [each for log in run.logs for each in log.measurements]
        matched = match(run.artifact, measurements, system)
        of = f"{Path(run.artifact.name).stem}, " if len(runs) > 1 else ""
        samples += [replace(each, name=of + each.name) for each in matched.samples]
        beats += [replace(each, event=of + each.event) for each in matched.beats]
        cpu += [replace(each, name=of + each.name) for each in matched.cpu]
        doubts += _of_run(run, tuple(matched.doubts))
    found = fit(system, samples)
    logs = tuple(log for run in runs for log in run.logs)
    names = tuple(run.artifact.name for run in runs)
    doubts += _of_fit(found)
    return Calibration(names, system, logs, found, tuple(beats), tuple(cpu), tuple(doubts))


def _of_run(run: Run, beats: Sequence[str]) -> Iterator[Diagnostic]:
    """Say what is in doubt about a run's logs."""
    for log in run.logs:
        if len(log.measurements) >= MOST_MEASUREMENTS:
            yield Diagnostic(
                "W351",
                f"of {log.name} the first {MOST_MEASUREMENTS:,} measurements are read, and it has "
                "more",
                Severity.WARNING,
                help="give a part of it",
            )
    if beats:
        yield Diagnostic(
            "W352",
            f"the beats of the log should be those of {run.artifact.name}, and are others: "
            f"{'; '.join(beats)}",
            Severity.WARNING,
            help="is this the artifact that ran, on the ports that the firmware sets?",
        )


def _of_fit(found: Fit) -> Iterator[Diagnostic]:
    """Say that a fit is no better than none."""
    held = found.held_out
    if found.told and held and not held.better and mean_error(held.after) > EXACT:
        yield Diagnostic(
            "W353",
            "fitted memories should estimate counts that were held out better than those of "
            f"{found.configuration.system.name}, and do not",
            Severity.WARNING,
            help="measure more of the network, as with `mizzen compile --instrument`",
        )


def samples_of(calibration: Calibration) -> Sequence[tuple[Sample, float, float]]:
    """Return counts with estimates over them, before and after, the furthest off first."""
    found = calibration.fit
    rows = zip(found.samples, found.before, found.after, strict=True)
    return sorted(rows, key=lambda row: -abs(row[2] - 1))
