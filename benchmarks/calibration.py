"""Memories fitted to half of published counts, and estimates of the other half with them.

Run ``python benchmarks/calibration.py`` for a table, with ``--json`` for the figures. Counts are
those that `timing.py` and `timing_u85.py` compare: Arm's models with networks of the ML Embedded
Evaluation Kit. With ``--vela VELA``, the command of a Vela 5.0.0, those of Ethos-U85 are there too.

Each NPU is a board by itself. A fit begins with the system configuration of `vela.ini`, knows
nothing of the memories that were counted with, and sees every second network; then the other half.

`held_median`, `held_worst`   deviation of estimates from counts that were held out, as a fraction
`held_10`, `held_20`          share of them within 10 and 20 %
`before_median`, `before_worst`  the same with the memories of `vela.ini`
`fit_median`, `fit_worst`     of the counts that were fitted to, all of them
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mizzen
from mizzen.analysis.measurement.fitting import Fit, Sample, fit, median, worst
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import load
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenWarning
from mizzen.targets.ethos_u.judge.timing import steps_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve
from timing import ACCELERATOR, MODELS, ROWS, VELAS, is_copy_of_zeros, kit, timed
from timing_counts_u85 import COUNTS, Count, vela_ini
from timing_u85 import program

SYSTEMS = {128: "Low", 256: "Low", 512: "Mid", 1024: "Mid", 2048: "High"}
"""Of `vela.ini`, by MACs of U85: what somebody would name who knows nothing of the kit's."""
MODE = "Dedicated_Sram_384KB"


@dataclass(frozen=True)
class Board:
    """An NPU with its counts, and the fit of its memories to them."""

    name: str
    networks: tuple[str, ...]
    fit: Fit


def sample(name: str, artifact: Artifact, counted: float) -> Sample:
    """Return a count of an artifact."""
    steps = [step.program for step in artifact.steps if isinstance(step, NpuStep)]
    return Sample(name, tuple(map(steps_of, steps)), counted)


def of_u55(rows: Path) -> Board | None:
    """Fit U55-128 to the kit's counts.

    Of a row whose program copied no zeros, what copies take by the model is added to the count.
    """
    data = json.loads(rows.read_text(encoding="utf-8"))
    system = kit(data["platform"]["timing_adapter"])
    found: list[Sample] = []
    for row in data["rows"]:
        path = MODELS / row["model"]
        if not path.is_file() or not row.get("use", True):
            continue
        artifact = mizzen.compile(path, ACCELERATOR, prove="off", **VELAS)
        more = copies(artifact, system) if "zeros" in row.get("note", "") else 0.0
        found.append(sample(path.stem, artifact, row["fvp"]["total_cycles"] + more))
    return board(ACCELERATOR, resolve(ACCELERATOR), found)


def copies(artifact: Artifact, system: EthosUConfiguration) -> float:
    """Return what copies of zeros take."""
    (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
    constants = step.program.constants[0]
    rows = timed(artifact, system)
    return sum(row.cycles for row in rows if is_copy_of_zeros(row, constants))


def of_u85(vela: Path, macs: int) -> Board | None:
    """Fit a U85 to the counts of its size, of those networks that are there."""
    name = f"ethos-u85-{macs}"
    found: list[Sample] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "vela.ini").write_text(vela_ini(), encoding="utf-8")
        for count in COUNTS:
            if count.macs == macs and (artifact := of_count(vela, count, folder)) is not None:
                found.append(sample(count.network, artifact, count.active))
    system = resolve(name, system_config=f"Ethos_U85_SYS_DRAM_{SYSTEMS[macs]}", memory_mode=MODE)
    return board(name, system, found)


def of_count(vela: Path, count: Count, folder: Path) -> Artifact | None:
    """Return the program of a count; None where its network is not there."""
    network = MODELS / f"{count.network}.tflite"
    return load(program(vela, network, count, folder)) if network.is_file() else None


def board(name: str, system: EthosUConfiguration, samples: list[Sample]) -> Board | None:
    """Fit the memories of a system; None without counts."""
    if not samples:
        return None
    return Board(name, tuple(each.name for each in samples), fit(system, samples))


def boards(rows: Path, vela: Path | None) -> Iterator[Board]:
    """Fit all boards of which there are counts."""
    made = [of_u55(rows)]
    if vela is not None:
        made += [of_u85(vela, macs) for macs in SYSTEMS]
    yield from (each for each in made if each is not None)


def figures(made: list[Board]) -> dict[str, float]:
    """Return the figures; the module's description says what each is."""
    fitted = [ratio for each in made for ratio in each.fit.after]
    found = {"fit_median": median(fitted), "fit_worst": worst(fitted)}
    held = [each.fit.held_out for each in made if each.fit.held_out is not None]
    if not held:
        return found
    before = [ratio for each in held for ratio in each.before]
    after = [ratio for each in held for ratio in each.after]
    return {
        "held_median": median(after),
        "held_worst": worst(after),
        "held_10": sum(abs(ratio - 1) <= 0.1 for ratio in after) / len(after),
        "held_20": sum(abs(ratio - 1) <= 0.2 for ratio in after) / len(after),
        "before_median": median(before),
        "before_worst": worst(before),
        **found,
    }


def table(made: list[Board]) -> str:
    """The estimates over counts, and the memories, for people."""
    lines = [f"{'NPU':14}{'network':28}{'before':>8}{'held out':>10}{'fitted':>8}"]
    for each in made:
        held = each.fit.held_out
        for place, network in enumerate(each.networks):
            out = "-" if held is None else f"{held.after[place]:.3f}"
            lines.append(
                f"{each.name:14}{network:28}{each.fit.before[place]:8.3f}{out:>10}"
                f"{each.fit.after[place]:8.3f}"
            )
        for row in each.fit.fitted:
            memory = row.parameter.memory.value if row.parameter.memory else "timer"
            told = f"{row.value:.4g} within {row.error:.2f}" if row.told else "not told"
            said = f"{memory}, {row.parameter.quantity.value}"
            lines.append(f"{'':14}  {said}: {row.parameter.before:.4g} -> {told}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=Path, default=ROWS, help="counts of the FVP, a JSON file")
    parser.add_argument("--vela", type=Path, help="the command of Vela 5.0.0, for Ethos-U85")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore", MizzenWarning)
    made = list(boards(args.rows, args.vela))
    if args.json:
        print(json.dumps({"figures": figures(made)}))
        return
    print(table(made))
    print("  ".join(f"{name} {value:.4g}" for name, value in figures(made).items()))


if __name__ == "__main__":
    main()
