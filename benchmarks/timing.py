"""The timing model against Arm's counts of cycles and bus beats, and against Vela's formula.

Run ``python benchmarks/timing.py`` for a table, with ``--json`` for the figures:

`fvp_worst`           greatest deviation from the FVP's cycles, as a fraction, of the rows in use
`fvp_mean_error`      mean of |log| of our cycles over the FVP's
`fvp_default_worst`   the same as the first with the system of `vela.ini` instead of the kit's own
`beats_worst`         greatest deviation of beats by port, maps of few channels counted as the
                      program of the time laid them out, ports without real traffic left out
`beats_raw_worst`     the same of the program of today, as it is
`vela_worst`, `vela_mean_error`  Vela's own estimate against the FVP, for comparison
`model_over_compile`  processor time of the model over that of `mizzen compile`, the worst of all
                      networks and NPUs
`model_over_codegen`  the same over Vela's compilation without proof, its program's model

Programs that are compared with counts are Vela's (`--generator vela`), as the counted ones are.

Counts are of Arm's ML Embedded Evaluation Kit on the Corstone-300 FVP with an Ethos-U55-128. The
program that was counted is of an older compiler than today's. What is known of the differences:

- Today's compiler pads channels by copying zeros out of flash: pooling operations over one element
  of a map among the constants whose bytes are all the same. Of a row that says so, these operations
  are taken off, cycles and beats.
- It keeps maps of fewer than 16 channels between operations dense, where the older one had bricks
  of 16, so that beats of such maps are counted as bricks.

Rows, and the adapters that the FVP's memories had, are read from the file that MIZZEN_FVP_ROWS or
`--rows` names, networks from MIZZEN_MODELS; `--rows` with other networks of the kit works as well.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.report.cost import OperationCost
from mizzen.targets.ethos_u.judge.hazards.maps import BRICK
from mizzen.targets.ethos_u.judge.timing import KernelWork, Timed, WorkKind, estimate
from mizzen.targets.ethos_u.judge.timing.reads import Moved, reads_of, write_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, MemoryTiming, Port
from mizzen.targets.ethos_u.machine.program import RegionIndex
from mizzen.targets.ethos_u.machine.system_config import resolve

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"
MODELS = Path(os.environ.get("MIZZEN_MODELS", SHARED / "models"))
ROWS = Path(os.environ.get("MIZZEN_FVP_ROWS", SHARED / "knowledge" / "data" / "fvp-u55-128.json"))
ACCELERATOR = "ethos-u55-128"
BEAT_BYTES = 8
BURST_WORDS = 8
"""Of a burst of 64 bytes, at which the driver has bursts split (AXI_LIMIT_MAX_BEATS_BYTES 0)."""
FEW_BEATS = 1000
"""Ports with fewer beats than this carry next to nothing, and say nothing about a layout."""
VELAS: dict[str, Any] = {"target_options": {"generator": "vela"}}
"""Whose program it is: the counts are of Vela's, and by default some are of Mizzen's own."""
COMPILED = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
REPEATS = 3


@dataclass(frozen=True)
class Beats:
    """Beats of 8 bytes: reads and writes of AXI0, reads of AXI1."""

    read: float
    written: float
    flash: float

    def over(self, other: Beats) -> tuple[float, float, float]:
        """Return the ratio of each port; 1 where there is next to nothing."""
        pairs = zip((self.read, self.written, self.flash),
                    (other.read, other.written, other.flash), strict=True)  # fmt: skip
        read, written, flash = (a / b if b >= FEW_BEATS else 1.0 for a, b in pairs)
        return read, written, flash


@dataclass(frozen=True)
class Row:
    """One network; cycles and beats without the copies of zeros where the row says so."""

    model: str
    counted: int
    ours: int
    default: int
    vela: int
    copies: int
    beats: Beats
    older_beats: Beats
    counted_beats: Beats
    used: bool


def kit_memory(timing: MemoryTiming, adapter: Mapping[str, int], width: int) -> MemoryTiming:
    """Return a memory behind a timing adapter.

    It lets so many words through in so many cycles. A burst that has begun goes on to its end, so
    that whole bursts are let through.
    """
    period = adapter["pulse_on"] + adapter["pulse_off"]
    words = BURST_WORDS * math.ceil(adapter["words_per_pulse"] / BURST_WORDS)
    return replace(
        timing,
        clock_scale=min(1.0, words * BEAT_BYTES / period / width),
        read_latency_cycles=adapter["read_latency"],
        write_latency_cycles=adapter["write_latency"],
        max_reads=adapter["max_reads"],
        max_writes=adapter["max_writes"],
    )


def kit(adapters: Mapping[str, Any]) -> EthosUConfiguration:
    """Return the system that the counts were made in."""
    found = resolve(ACCELERATOR)
    width = found.accelerator.traits.axi_bytes_per_cycle
    first, second = (
        kit_memory(found.system.behind(port), adapters[name], width)
        for port, name in ((Port.AXI0, "axi0"), (Port.AXI1, "axi1"))
    )
    system = replace(found.system, name="the kit's timing adapters", axi0=first, axi1=second)
    return replace(found, system=system)


def is_copy_of_zeros(row: Timed, constants: npt.NDArray[np.uint8]) -> bool:
    """Whether an operation copies zeros: pools over one element of what lies in flash.

    A zero of quantised numbers is any number that all of the map's elements are.
    """
    work = row.work
    if not isinstance(work, KernelWork) or work.kind is not WorkKind.POOL:
        return False
    (taken,) = work.blocks.inputs
    if work.subkernels != (1,) or taken.map.place.index != RegionIndex.READ_ONLY:
        return False
    bytes_ = taken.map.bytes
    return bool(np.ptp(constants[bytes_.first : bytes_.end]) == 0)


def timed(artifact: Artifact, system: EthosUConfiguration) -> list[Timed]:
    """Time all streams of an artifact."""
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    return [row for step in steps for row in estimate(step.program, system)]


def beats(rows: Iterable[Timed]) -> Beats:
    """Count beats by port."""
    read: defaultdict[Port, int] = defaultdict(int)
    written = 0
    for use in (use for row in rows for use in row.uses):
        read[use.bus.port] += use.read_bytes
        written += use.written_bytes
    return Beats(read[Port.AXI0] / BEAT_BYTES, written / BEAT_BYTES, read[Port.AXI1] / BEAT_BYTES)


def older_beats(rows: list[Timed], artifact: Artifact) -> Beats:
    """Count beats as if maps between operations had bricks wherever they have few channels."""
    edges = {
        (place.region, place.offset, place.shape[-1])
        for step in artifact.steps
        if isinstance(step, NpuStep)
        for place in (*step.program.inputs, *step.program.outputs)
    }
    inside = [
        (moved, fm, reads)
        for row in rows
        for moved, fm, reads in _maps(row)
        if fm.place.index != RegionIndex.READ_ONLY
        and (fm.place.index, fm.bases[0], fm.shape[2]) not in edges
    ]
    channels: dict[tuple[int, int], int] = {}
    for _, fm, _ in inside:
        key = fm.place.index, fm.bases[0]
        channels[key] = min(fm.shape[2], channels.get(key, fm.shape[2]))
    found = beats(rows)
    read, written = found.read, found.written
    for moved, fm, reads in inside:
        fewest = channels[fm.place.index, fm.bases[0]]
        if not fm.bricks and fewest < BRICK:
            more = moved.bytes_ * (BRICK / fewest - 1) / BEAT_BYTES
            read, written = (read + more, written) if reads else (read, written + more)
    return Beats(read, written, found.flash)


def _maps(row: Timed) -> Iterable[tuple[Moved, Any, bool]]:
    if not isinstance(row.work, KernelWork):
        return
    for moved, item in zip(reads_of(row.work, BEAT_BYTES), row.work.blocks.inputs, strict=True):
        yield moved, item.map, True
    written, result = write_of(row.work, BEAT_BYTES), row.work.blocks.result
    if written is not None and result is not None:
        yield written, result.map, False


def row_of(data: Mapping[str, Any], system: EthosUConfiguration) -> Row:
    """Compile and time a network of the kit."""
    artifact = mizzen.compile(MODELS / data["model"], ACCELERATOR, **VELAS)
    here = timed(artifact, system)
    copies = _copies_of_zeros(artifact, here) if "zeros" in data.get("note", "") else []
    kept = [row for row in here if row not in copies]
    default = cost_report(artifact)
    fvp = data["fvp"]
    assert artifact.report is not None
    left = sum(row.cycles for row in copies)
    vela_left = sum(row.vela_cycles for row in copies)
    return Row(
        model=data["model"],
        counted=fvp["total_cycles"],
        ours=round(sum(row.cycles for row in here) - left),
        default=default.npu_cycles - round(sum(map(_cycles, _copies(default.operations, copies)))),
        vela=artifact.report.figures["totalCycles"] - vela_left,
        copies=len(copies),
        beats=beats(kept),
        older_beats=older_beats(kept, artifact),
        counted_beats=Beats(
            fvp["axi0_read_beats"], fvp["axi0_write_beats"], fvp["axi1_read_beats"]
        ),
        used=data.get("use", True),
    )


def _copies_of_zeros(artifact: Artifact, rows: list[Timed]) -> list[Timed]:
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    constants = step.program.constants[RegionIndex.READ_ONLY]
    return [row for row in rows if is_copy_of_zeros(row, constants)]


def _copies(rows: Iterable[OperationCost], copies: list[Timed]) -> Iterable[OperationCost]:
    places = {row.work.origin.command for row in copies}
    return (row for row in rows if row.origin is not None and row.origin.command in places)


def _cycles(row: OperationCost) -> int:
    return row.cycles


def processor_seconds() -> float:
    """Seconds of the processor, those of processes that have ended included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def least(work: Callable[[], object]) -> float:
    """Return the seconds of the processor of the fastest of some runs."""
    best = math.inf
    for _ in range(REPEATS):
        start = processor_seconds()
        work()
        best = min(best, processor_seconds() - start)
    return best


@dataclass(frozen=True)
class Speed:
    """The model's time over that of the whole compilation, and of the one without proof."""

    over_compile: float
    over_codegen: float


def speeds(networks: Iterable[Path]) -> dict[str, Speed]:
    """Return how long the model takes, by network and accelerator."""
    found: dict[str, Speed] = {}
    for path in networks:
        for accelerator in COMPILED:
            artifact = mizzen.compile(path, accelerator, prove="off", **VELAS)

            def model(artifact: Artifact = artifact) -> None:
                for step in artifact.steps:
                    if isinstance(step, NpuStep):  # decoding is part of the model's work
                        vars(step.program).pop("instructions", None)
                cost_report(artifact)

            whole = least(lambda p=path, a=accelerator: mizzen.compile(p, a))
            codegen = least(
                lambda p=path, a=accelerator: mizzen.compile(p, a, prove="off", **VELAS)
            )
            taken = least(model)
            found[f"{path.stem} {accelerator}"] = Speed(taken / whole, taken / codegen)
    return found


def figures(rows: list[Row]) -> dict[str, float]:
    """Return the figures of the rows in use."""
    used = [row for row in rows if row.used]
    ratios = [row.ours / row.counted for row in used]
    velas = [row.vela / row.counted for row in used]
    older = [ratio for row in used for ratio in row.older_beats.over(row.counted_beats)]
    raw = [ratio for row in used for ratio in row.beats.over(row.counted_beats)]
    return {
        "fvp_worst": _worst(ratios),
        "fvp_mean_error": _mean_error(ratios),
        "fvp_default_worst": _worst([row.default / row.counted for row in used]),
        "beats_worst": _worst(older),
        "beats_raw_worst": _worst(raw),
        "vela_worst": _worst(velas),
        "vela_mean_error": _mean_error(velas),
    }


def _worst(ratios: list[float]) -> float:
    return max(abs(ratio - 1) for ratio in ratios)


def _mean_error(ratios: list[float]) -> float:
    return sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)


def table(rows: list[Row]) -> str:
    """The rows for people."""
    lines = [
        f"{'network':34}{'FVP':>10}{'ours':>11}{'ratio':>7}{'default':>8}{'Vela':>7}"
        f"{'copies':>7}   beats ours/FVP: read, written, flash (as counted; older layout)"
    ]
    for row in rows:
        raw = " ".join(f"{ratio:.3f}" for ratio in row.beats.over(row.counted_beats))
        older = " ".join(f"{ratio:.3f}" for ratio in row.older_beats.over(row.counted_beats))
        lines.append(
            f"{row.model:34}{row.counted:10,}{row.ours:11,}{row.ours / row.counted:7.3f}"
            f"{row.default / row.counted:8.3f}{row.vela / row.counted:7.3f}{row.copies:7}   "
            f"{raw}; {older}{'' if row.used else '   not used'}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=Path, default=ROWS, help="counts of the FVP, a JSON file")
    parser.add_argument(
        "--no-speed", action="store_true", help="leave out how long the model takes"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    data = json.loads(args.rows.read_text(encoding="utf-8"))
    system = kit(data["platform"]["timing_adapter"])
    rows = [row_of(row, system) for row in data["rows"] if (MODELS / row["model"]).is_file()]
    found = figures(rows)
    speed = {} if args.no_speed else speeds(sorted(MODELS.glob("*.tflite")))
    if speed:
        found["model_over_compile"] = max(row.over_compile for row in speed.values())
        found["model_over_codegen"] = max(row.over_codegen for row in speed.values())
    if args.json:
        rows_of_speed = {name: asdict(row) for name, row in speed.items()}
        print(json.dumps({"figures": found, "speed": rows_of_speed}))
        return
    print(table(rows))
    print("  ".join(f"{name} {value:.4g}" for name, value in found.items()))
    if not speed:
        return
    for name in sorted(speed, key=lambda name: -speed[name].over_codegen)[:3]:
        row = speed[name]
        print(
            f"{name}: {row.over_compile:.3f} of its compilation, {row.over_codegen:.3f} of Vela's"
        )


if __name__ == "__main__":
    main()
