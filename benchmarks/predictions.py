"""Predictions before any fit: times and energies against what others measured and published.

Run ``python benchmarks/predictions.py`` for a table, with ``--json`` for rows and figures:

`times_known`, `times`                how many rows with a known set-up, and how many in all
`time_known_median`, `time_known_worst`  deviation of predicted over published times, as a fraction,
                                      where the set-up is known; median and greatest
`time_median`                         the median over all rows
`energies`, `energy_median`           the same of energies that no figure was fitted to
`energy_fitted`                       deviation of the row that figures were fitted to

Networks that were published uncompiled are compiled by Vela, as theirs were (``--generator vela``),
for the board's memories where a vendor publishes them, else for those of `vela.ini`. Those that
were published compiled are timed as they are. They are looked for in the folders MIZZEN_MODELS and
MIZZEN_PREDICTIONS; the rows name where each is from. Some are made by shape, with random weights.
What is not there is left out, and why is printed. ``--smallest`` takes what is made by shape alone.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import load
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.report.board_figures import BoardFigures
from mizzen.report.cost import CostReport
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, MemoryTiming
from mizzen.targets.ethos_u.machine.system_config import resolve
from predictions_networks import NETWORKS
from predictions_rows import ROWS, Row

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
OTHERS = Path(os.environ.get("MIZZEN_PREDICTIONS", REPOSITORY.parent / "shared" / "predictions"))
SMALLEST = "yolo_v1_96"


@dataclass(frozen=True)
class Predicted:
    """A row with what is predicted; energies in mJ, None where none is."""

    row: Row
    ms: float
    mj: float | None = None
    low_mj: float | None = None
    high_mj: float | None = None

    @property
    def ratio(self) -> float:
        """Predicted over published time."""
        return self.ms / self.row.ms

    @property
    def energy_ratio(self) -> float | None:
        """Predicted over published energy."""
        return None if self.mj is None or self.row.mj is None else self.mj / self.row.mj


def _memory(timing: MemoryTiming, told: tuple[float, int, int]) -> MemoryTiming:
    scale, burst, latency = told
    return replace(
        timing,
        clock_scale=scale,
        burst_bytes=burst,
        read_latency_cycles=latency,
        write_latency_cycles=latency,
    )


def system(row: Row) -> EthosUConfiguration:
    """Return the system that a row was measured in, as far as it is known."""
    found = resolve(
        row.accelerator,
        system_config=row.system,
        memory_mode=row.memory_mode,
        optimise=row.optimise,
    )
    if row.speeds is None:
        return found
    first, second = found.system.axi0, found.system.axi1
    known = replace(
        found.system,
        axi0=_memory(first, row.speeds.sram),
        axi1=_memory(second, row.speeds.flash),
    )
    return replace(found, system=known)


def compiled(row: Row) -> Artifact | None:
    """Return a row's artifact: the published one, or what Vela makes of its network."""
    if row.network in NETWORKS:
        return _by_vela(NETWORKS[row.network](), row)
    if row.file:
        path = OTHERS / row.network
        return load(path) if path.is_file() else None
    path = MODELS / row.network
    return _by_vela(path.read_bytes(), row) if path.is_file() else None


def _by_vela(data: bytes, row: Row) -> Artifact:
    return mizzen.compile(
        data,
        row.accelerator,
        system_config=row.system,
        memory_mode=row.memory_mode,
        optimise=row.optimise,
        prove="off",
        target_options={"generator": "vela"},
    )


def figures_of(row: Row) -> BoardFigures:
    """Return the clock of a row, with the energies of its board."""
    figures = BoardFigures(clock_hz=row.clock_mhz * 1e6)
    if not row.board:
        return figures
    of_board = resolve_target(CompileOptions(row.accelerator, board=row.board)).board_figures
    return figures if of_board is None else replace(figures, energy=of_board.energy)


def predicted(row: Row) -> Predicted | None:
    """Predict a row; None where its network is not there."""
    artifact = compiled(row)
    if artifact is None:
        return None
    cost: CostReport = cost_report(artifact, configuration=system(row), figures=figures_of(row))
    ms, energy = cost.time.seconds * 1e3, cost.energy
    if energy is None:
        return Predicted(row, ms)
    return Predicted(row, ms, energy.mj, energy.low_mj, energy.high_mj)


def all_predicted(rows: Iterable[Row]) -> Iterator[Predicted]:
    """Predict all rows whose networks are there, and say which are not."""
    for row in rows:
        found = predicted(row)
        if found is None:
            where = row.file or "the folder MIZZEN_MODELS"
            print(f"left out: {row.network} is not there ({where})", file=sys.stderr)
        else:
            yield found


def figures(rows: list[Predicted]) -> dict[str, float]:
    """Return the figures; those without a row are left out."""
    known = [abs(each.ratio - 1) for each in rows if each.row.known]
    tested = [each for each in rows if each.energy_ratio is not None]
    energies = [abs(each.energy_ratio - 1) for each in tested
                if each.energy_ratio is not None and not each.row.fitted]  # fmt: skip
    fitted = [abs(each.energy_ratio - 1) for each in tested
              if each.energy_ratio is not None and each.row.fitted]  # fmt: skip
    found: dict[str, float] = {
        "times": len(rows), "times_known": len(known), "energies": len(energies),
    }  # fmt: skip
    if rows:
        found["time_median"] = median(abs(each.ratio - 1) for each in rows)
    if known:
        found |= {"time_known_median": median(known), "time_known_worst": max(known)}
    if energies:
        found["energy_median"] = median(energies)
    if fitted:
        found["energy_fitted"] = max(fitted)
    return found


def table(rows: list[Predicted]) -> str:
    """The rows for people."""
    lines = [
        f"{'network':52}{'NPU':14}{'MHz':>5} {'mode':12}{'ms':>9}{'published':>10}{'ratio':>7}"
    ]
    for each in rows:
        row = each.row
        doubt = "" if row.known else "  set-up not known"
        lines.append(
            f"{row.network[:50]:52}{row.accelerator:14}{row.clock_mhz:5g} {row.memory_mode:12}"
            f"{each.ms:9.3f}{row.ms:10.3f}{each.ratio:7.3f}{doubt}"
        )
        if each.mj is not None and row.mj is not None:
            bar = f"({each.low_mj:.3f} to {each.high_mj:.3f})"
            fitted = ", fitted to it" if row.fitted else ""
            lines.append(f"    energy {each.mj:.3f} mJ {bar}, published {row.mj:.3f}{fitted}")
        lines.append(f"    not known: {row.not_known}\n    {row.source}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smallest", action="store_true", help="only a network made by shape")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    wanted = [row for row in ROWS if not args.smallest or row.network == SMALLEST]
    rows = list(all_predicted(wanted))
    found = figures(rows)
    if args.json:
        told = [{**asdict(each), "ratio": each.ratio, "energy_ratio": each.energy_ratio}
                for each in rows]  # fmt: skip
        print(json.dumps({"figures": found, "rows": told}))
        return
    print(table(rows))
    for name, value in found.items():
        print(f"{name:20}{value:8.3f}")


if __name__ == "__main__":
    main()
