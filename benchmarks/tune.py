"""What a search over ways to compile gains, over what `mizzen compile` gives by itself.

Run ``python benchmarks/tune.py`` for a table, with ``--json`` for the figures:

`tune_cycles_ratio`       cycles of the fastest that needs no more of any memory (SRAM, other memory
                          that is written, constants), geometric mean over networks and NPUs
`tune_sram_ratio`         SRAM that is written of the least at no more than 1.01 times the cycles
`tune_seconds`            processor time of the search for one network and NPU, the mean
`tune_pairs`              how many there are

Cycles are those of Mizzen's model of the command stream, CPU operators included. What is chosen is
proved: executed and compared with the reference of the network as it was. Networks are those of the
folder that MIZZEN_MODELS names.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mizzen.analysis.tuning.tune import Search, begin
from mizzen.report.tuning import Candidate, Objective

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
ACCELERATORS = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-512", "ethos-u85-256")


@dataclass(frozen=True, slots=True)
class Pair:
    """A network and an NPU: what is compiled by itself, and what was chosen, proved."""

    name: str
    base: Candidate
    fastest: Candidate
    smallest: Candidate
    seconds: float

    @property
    def cycles_ratio(self) -> float:
        """Cycles in no more memory."""
        return self.fastest.cycles / self.base.cycles

    @property
    def sram_ratio(self) -> float:
        """SRAM at about the same cycles; 1 where none is written."""
        return self.smallest.sram_bytes / self.base.sram_bytes if self.base.sram_bytes else 1.0


def used_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    rows = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(row.ru_utime + row.ru_stime for row in rows)


def searched(path: Path, accelerator: str, jobs: int) -> Pair:
    """Search one network for one NPU."""
    start = used_seconds()
    search: Search = begin(path, accelerator, jobs=jobs)
    fastest, smallest = search.best(Objective.CYCLES), search.best(Objective.SRAM)
    assert fastest is not None, "what is compiled as it was asked for always fits"
    assert smallest is not None, "likewise"
    taken = used_seconds() - start
    return Pair(f"{path.stem} {accelerator}", search.base, fastest, smallest, taken)


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    """Search, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="networks whose names contain this")
    parser.add_argument("--on", default="", help="NPUs whose names contain this")
    options = parser.parse_args()
    pairs: list[Pair] = []
    for path in sorted(MODELS.glob("*.tflite")):
        for accelerator in ACCELERATORS:
            if options.only in path.name and options.on in accelerator:
                pairs.append(searched(path, accelerator, options.jobs))
                row = pairs[-1]
                print(
                    f"{row.name:48} cycles {row.cycles_ratio:.3f}  "
                    f"SRAM {row.sram_ratio:.3f}  {row.seconds:5.1f} s  {row.fastest.choice}"
                    f"  |  {row.smallest.choice}",
                    file=sys.stderr,
                    flush=True,
                )
    figures = {
        "tune_cycles_ratio": mean([row.cycles_ratio for row in pairs]),
        "tune_sram_ratio": mean([row.sram_ratio for row in pairs]),
        "tune_seconds": sum(row.seconds for row in pairs) / len(pairs),
        "tune_pairs": float(len(pairs)),
    }
    if options.json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:24} {value:.3f}")


if __name__ == "__main__":
    main()
