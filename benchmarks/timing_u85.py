"""The timing model against counts that Arm's Corstone-320 model makes of Ethos-U85.

Run ``python benchmarks/timing_u85.py --vela VELA`` for a table, with ``--json`` for the figures.
VELA is the command of Vela 5.0.0, whose programs were counted, for instance of an environment of
its own with ``pip install ethos-u-vela==5.0.0``. A program that is not to the byte the one that was
counted is an error. Networks are looked for in the folder that MIZZEN_MODELS names and in those of
``--networks``; those that are not there are left out.

`cycles_worst`, `cycles_mean_error`  greatest deviation from the model's cycles, as a fraction, and
                                     the mean of |log|
`reads_worst`, `writes_worst`        greatest deviation of beats of both memories
`vela_worst`, `vela_mean_error`      Vela's formula against the same cycles, for comparison
`board_worst`                        greatest deviation from cycles on an FPGA with a U85-1024
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mizzen.artifact.loading import load
from mizzen.artifact.steps import NpuStep
from mizzen.targets.ethos_u.judge.timing import Timed, estimate
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve
from timing_counts_u85 import COUNTS, KITS, PULSE_CYCLES, WORD_BYTES, Count, vela_ini

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
MEMORY_MODE = "Dedicated_Sram"


@dataclass(frozen=True)
class Estimated:
    """What we say of a count."""

    count: Count
    cycles: float
    vela: int
    reads: float
    writes: float

    @property
    def ratios(self) -> tuple[float, float, float, float]:
        """Cycles, Vela's cycles, reads and writes over what was counted."""
        counted = self.count
        return (
            self.cycles / counted.active,
            self.vela / counted.active,
            self.reads / counted.reads,
            self.writes / counted.writes,
        )


def system(macs: int, ini: Path) -> EthosUConfiguration:
    """Return the system that the counts of a size were made in."""
    kit = KITS[macs]
    name = f"ethos-u85-{macs}"
    asked = resolve(name, config=ini, system_config=kit.system, memory_mode=MEMORY_MODE)
    external = replace(
        asked.system.axi1,
        clock_scale=kit.words / PULSE_CYCLES,
        ports=1,
        read_latency_cycles=kit.external_read_latency,
        write_latency_cycles=kit.external_write_latency,
    )
    return replace(asked, system=replace(asked.system, axi1=external))


def program(vela: Path, network: Path, count: Count, folder: Path) -> Path:
    """Compile a network as it was for a count. Exits if another program comes of it."""
    options = {
        "--accelerator-config": f"ethos-u85-{count.macs}",
        "--config": str(folder / "vela.ini"),
        "--system-config": KITS[count.macs].system,
        "--memory-mode": MEMORY_MODE,
        "--optimise": "Performance",
        "--output-dir": str(folder),
    }
    command = [str(vela), *(word for pair in options.items() for word in pair), str(network)]
    subprocess.run(command, check=True, capture_output=True)
    made = folder / f"{network.stem}_vela.tflite"
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    if not digest.startswith(count.program):
        sys.exit(f"{network.stem} for {count.macs} MACs: not the program that was counted")
    return made


def operations_of(path: Path, configuration: EthosUConfiguration) -> list[Timed]:
    """Time all streams of a file."""
    steps = [step for step in load(path).steps if isinstance(step, NpuStep)]
    return [timed for step in steps for timed in estimate(step.program, configuration)]


def summed(count: Count, operations: list[Timed]) -> Estimated:
    """Sum up the operations of a program."""
    uses = [use for operation in operations for use in operation.uses]
    return Estimated(
        count,
        sum(operation.cycles for operation in operations),
        sum(operation.vela_cycles for operation in operations),
        sum(use.read_bytes for use in uses) / WORD_BYTES,
        sum(use.written_bytes for use in uses) / WORD_BYTES,
    )


def estimated(vela: Path, folders: list[Path]) -> Iterator[Estimated]:
    """Compile and time what there is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "vela.ini").write_text(vela_ini(), encoding="utf-8")
        for count in COUNTS:
            files = [path / f"{count.network}.tflite" for path in folders]
            for network in [path for path in files if path.is_file()][:1]:
                made = program(vela, network, count, folder)
                yield summed(count, operations_of(made, system(count.macs, folder / "vela.ini")))


def figures(made: list[Estimated]) -> dict[str, float]:
    """Return the figures; the module's description says what each is."""
    cycles, vela, reads, writes = zip(*(one.ratios for one in made), strict=True)
    boards = [one.cycles / one.count.board for one in made if one.count.board]
    return {
        "cycles_worst": _worst(cycles),
        "cycles_mean_error": _mean_error(cycles),
        "reads_worst": _worst(reads),
        "writes_worst": _worst(writes),
        "vela_worst": _worst(vela),
        "vela_mean_error": _mean_error(vela),
        **({"board_worst": _worst(boards)} if boards else {}),
    }


def _worst(ratios: tuple[float, ...] | list[float]) -> float:
    return max(abs(ratio - 1) for ratio in ratios)


def _mean_error(ratios: tuple[float, ...]) -> float:
    return sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)


def table(made: list[Estimated]) -> str:
    """The estimates for people."""
    lines = [f"{'network':28}{'MACs':>5}{'FVP':>10}{'ours':>7}{'Vela':>7}{'read':>7}{'written':>8}"]
    for one in made:
        cycles, vela, reads, writes = one.ratios
        lines.append(
            f"{one.count.network:28}{one.count.macs:5}{one.count.active:10,}{cycles:7.3f}"
            f"{vela:7.3f}{reads:7.3f}{writes:8.3f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--vela", type=Path, required=True, help="the command of Vela 5.0.0")
    parser.add_argument("--networks", type=Path, action="append", default=[MODELS])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    made = list(estimated(args.vela, args.networks))
    if not made:
        sys.exit("none of the networks that were counted is there")
    if args.json:
        print(json.dumps({"figures": figures(made)}))
        return
    print(table(made))
    print("  ".join(f"{name} {value:.4g}" for name, value in figures(made).items()))


if __name__ == "__main__":
    main()
