"""Mizzen beside ExecuTorch's Arm backend, from a PyTorch module to a compiled artifact.

``python benchmarks/against_executorch.py --peer PYTHON`` runs both, for each network of the zoo and
each target, one after the other in fresh processes, from the same weights and calibration inputs.
PYTHON (or MIZZEN_EXECUTORCH_PYTHON) has executorch[ethos-u] installed, in an environment of its
own. A table on standard output, or with ``--json`` the figures, which are ours over theirs:

lowering_ratio      geometric mean of the seconds from the converted program to the artifact
process_ratio       the same of the whole process, imports and quantisation included
cycles_ratio        the same of the estimated cycles of what is on the NPU, summed over partitions
cycles_ratio_worst  the largest of these
sram_ratio          geometric mean of the SRAM for feature maps, the largest partition's
npu_macs_minus_peer_min  the least of our share of MACs on the NPU minus theirs
failed              cases that one side could not do; they are in no ratio

Cycles and SRAM of both are estimates of the same compiler core in the same configuration: each
side's TOSA goes through the core that Mizzen has. Exits with 1 if our side failed a case.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import against_executorch_case as case_files

HERE = Path(__file__).resolve().parent
TARGETS = ("ethos-u55-128", "ethos-u85-256")
PEER_VARIABLE = "MIZZEN_EXECUTORCH_PYTHON"
TIME_LIMIT_SECONDS = 1800


@dataclass(frozen=True)
class Outcome:
    """What one side made of one network; the numbers are 0 where it failed.

    npu_macs       share of the multiply-accumulates that run on the NPU
    cpu_operators  operators that run on the CPU, and how many, without those at the boundary
    """

    error: str = ""
    lowering_seconds: float = 0.0
    process_seconds: float = 0.0
    peak_memory_bytes: int = 0
    artifact_bytes: int = 0
    cycles: int = 0
    sram_bytes: int = 0
    constant_bytes: int = 0
    npu_macs: float = 0.0
    partitions: int = 0
    cpu_operators: str = ""


@dataclass(frozen=True)
class Row:
    """Both sides of one network on one target."""

    network: str
    target: str
    ours: Outcome
    theirs: Outcome

    @property
    def failed(self) -> bool:
        return bool(self.ours.error or self.theirs.error)


def run_side(python: str, script: str, network: str, target: str, folder: Path) -> Outcome:
    """Compile a network in a fresh process; `folder` has its weights and inputs in ``case.pt``."""
    results = folder / f"{Path(script).stem}_{target}"
    results.mkdir(exist_ok=True)
    result_file = results / "result.json"
    result_file.unlink(missing_ok=True)
    command = [python, str(HERE / script), network, target, str(folder / "case.pt"), str(results)]
    start = time.monotonic()
    with (results / "log.txt").open("w") as log:
        try:
            done = subprocess.run(
                command, stdout=log, stderr=log, timeout=TIME_LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return Outcome(error=f"takes longer than {TIME_LIMIT_SECONDS} s")
    if not result_file.exists():
        return Outcome(error=f"ends with {done.returncode} and no result")
    result = json.loads(result_file.read_text())
    return (
        Outcome(error=result["error"])
        if "error" in result
        else read(result, target, start, results)
    )


def read(result: dict[str, Any], target: str, start: float, results: Path) -> Outcome:
    """Put together what a side says and what the core says of its partitions' TOSA."""
    try:
        figures = core_figures(target, [results / name for name in result["tosa"]])
    except RuntimeError as error:
        return Outcome(error=str(error))
    operators: dict[str, int] = result["cpu_operators"]
    return Outcome(
        lowering_seconds=result["lowering_seconds"],
        # Both ends are on the system-wide monotonic clock.
        process_seconds=result["finished"] - start,
        peak_memory_bytes=result["peak_memory_bytes"],
        artifact_bytes=result["artifact_bytes"],
        cycles=sum(part["cycles"] for part in figures),
        sram_bytes=max((part["sram_bytes"] for part in figures), default=0),
        constant_bytes=sum(part["constant_bytes"] for part in figures),
        npu_macs=1 - result["cpu_macs"] / result["macs"],
        partitions=len(figures),
        cpu_operators=" ".join(f"{name}x{count}" for name, count in sorted(operators.items())),
    )


def core_figures(target: str, files: list[Path]) -> list[dict[str, int]]:
    """Return what the core estimates of each TOSA file. RuntimeError if it refuses one."""
    command = [sys.executable, str(HERE / "against_executorch_core.py"), target, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ends with {done.returncode}"]
        raise RuntimeError(f"the core refuses the TOSA: {lines[-1]}")
    return json.loads(done.stdout)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean, NaN of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan


def ratios(rows: Iterable[Row], quantity: Callable[[Outcome], float]) -> list[float]:
    """Return ours over theirs where both sides have it."""
    both = [(quantity(row.ours), quantity(row.theirs)) for row in rows if not row.failed]
    return [ours / theirs for ours, theirs in both if ours and theirs]


def figures_of(rows: list[Row]) -> dict[str, float]:
    """Sum up all rows; the module's description says what each figure is."""
    cycles = ratios(rows, lambda outcome: outcome.cycles)
    shares = [row.ours.npu_macs - row.theirs.npu_macs for row in rows if not row.theirs.error]
    return {
        "lowering_ratio": geometric_mean(ratios(rows, lambda outcome: outcome.lowering_seconds)),
        "process_ratio": geometric_mean(ratios(rows, lambda outcome: outcome.process_seconds)),
        "cycles_ratio": geometric_mean(cycles),
        "cycles_ratio_worst": max(cycles, default=math.nan),
        "sram_ratio": geometric_mean(ratios(rows, lambda outcome: outcome.sram_bytes)),
        "npu_macs_minus_peer_min": min(shares, default=math.nan),
        "failed": sum(row.failed for row in rows),
    }


HEAD = (
    f"{'':32}{'lowering s':>15}{'process s':>15}{'cycles':>23}{'SRAM KiB':>15}"
    f"{'NPU MACs %':>13}{'parts':>8}\n"
    f"{'network':19}{'target':13}" + f"{'ours theirs':>15}" * 2 + f"{'ours theirs':>23}"
    f"{'ours theirs':>15}{'ours theirs':>13}{'o/t':>8}"
)


def pair(ours: float, theirs: float, width: int, digits: int = 1) -> str:
    """Write two numbers side by side, right-aligned."""
    return f"{ours:{width - 8}.{digits}f} {theirs:7.{digits}f}"


def line(row: Row) -> str:
    """Write one row of the table, with lines below it for what is on the CPU or failed."""
    ours, theirs = row.ours, row.theirs
    text = (
        f"{row.network:19}{row.target:13}"
        + pair(ours.lowering_seconds, theirs.lowering_seconds, 15, 2)
        + pair(ours.process_seconds, theirs.process_seconds, 15)
        + f"{ours.cycles:12} {theirs.cycles:10}"
        + pair(ours.sram_bytes / 1024, theirs.sram_bytes / 1024, 15)
        + f"{100 * ours.npu_macs:6.1f} {100 * theirs.npu_macs:6.1f}"
        + f"{ours.partitions:5}/{theirs.partitions}"
    )
    for who, outcome in (("ours", ours), ("theirs", theirs)):
        if outcome.error:
            text += f"\n    {who} failed: {outcome.error}"
        elif outcome.cpu_operators:
            text += f"\n    {who} on the CPU: {outcome.cpu_operators}"
    return text


class Peer:
    """Runs the peer, or takes from a file what it once said."""

    def __init__(self, python: str, reuse: Path | None) -> None:
        self.python, self.reuse = python, reuse
        known = reuse is not None and reuse.exists()
        self.kept: dict[str, Any] = json.loads(reuse.read_text()) if known and reuse else {}

    def outcome(self, network: str, target: str, folder: Path) -> Outcome:
        """Return the peer's outcome; what is taken from the file is said on standard error."""
        key = f"{network} {target}"
        if key in self.kept:
            print(f"{key}: theirs is from {self.reuse}", file=sys.stderr)
            return Outcome(**self.kept[key])
        outcome = run_side(self.python, "against_executorch_peer.py", network, target, folder)
        if self.reuse is not None:
            self.kept[key] = asdict(outcome)
            self.reuse.write_text(json.dumps(self.kept, indent=1))
        return outcome


def compare(networks: list[str], targets: list[str], peer: Peer, folder: Path) -> Iterable[Row]:
    """Run both sides of every case, ours right after theirs."""
    for network in networks:
        place = folder / network
        place.mkdir(parents=True, exist_ok=True)
        case_files.write(network, place / "case.pt")
        for target in targets:
            theirs = peer.outcome(network, target, place)
            ours = run_side(sys.executable, "against_executorch_ours.py", network, target, place)
            yield Row(network, target, ours, theirs)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    names = case_files.names()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", metavar="PYTHON", default=os.environ.get(PEER_VARIABLE))
    parser.add_argument("--networks", metavar="A,B", default=",".join(names))
    parser.add_argument("--targets", metavar="A,B", default=",".join(TARGETS))
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep each side's files there")
    parser.add_argument(
        "--reuse", metavar="FILE", type=Path, help="run the peer once, and keep what it said there"
    )
    options = parser.parse_args()
    options.networks, options.targets = options.networks.split(","), options.targets.split(",")
    unknown = sorted(set(options.networks) - set(names))
    if unknown:
        parser.error(f"--networks: {', '.join(unknown)}: the zoo has {', '.join(names)}")
    if not options.peer:
        parser.error(f"the peer's interpreter must be given with --peer or {PEER_VARIABLE}")
    return options


def main() -> int:
    """Print the table or the figures."""
    options = arguments()
    peer = Peer(options.peer, options.reuse)
    rows: list[Row] = []
    show = sys.stderr if options.json else sys.stdout
    print(HEAD, file=show, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for row in compare(options.networks, options.targets, peer, folder):
            rows.append(row)
            print(line(row), file=show, flush=True)
    figures = figures_of(rows)
    if options.json:
        # JSON has no NaN: a figure that no case gave is null.
        known = {name: None if math.isnan(value) else value for name, value in figures.items()}
        print(json.dumps({"figures": known, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print("\n" + "\n".join(f"{name:26}{value:8.3f}" for name, value in figures.items()))
    return int(any(row.ours.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
