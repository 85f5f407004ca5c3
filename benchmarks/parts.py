"""What cutting artifacts at their layers costs: the sum of all parts against the whole.

Run ``python benchmarks/parts.py`` for a table, with ``--json`` for the figures:

`sum_over_whole`     cycles of all parts, one after the other, over those of the whole, mean
`worst`              the greatest such ratio
`work_over_whole`    likewise without the time until each part's first operation is at work, which
                     is read off the part alone
`added_over_whole`   what the timing model says that cutting adds, over the whole, mean
`unequal`            artifacts whose parts give other outputs, or have hazards
`parts`              in all

Cycles are those of the timing model, by which `mizzen emulate` counts. The networks are digits and
those of `MIZZEN_MODELS`, with Mizzen's code and with Vela's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mizzen
from mizzen.analysis.instrumenting import Instrumented, instrument
from mizzen.diagnostics import MizzenError

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
DIGITS = REPOSITORY / "examples" / "digits" / "digits.tflite"
NETWORKS = ("kws_ref_model", "person_detect")
NPUS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
GENERATORS = ("own", "vela")
NOT_EQUAL = ("E313", "E314")


@dataclass(frozen=True, slots=True)
class Row:
    """An artifact that was cut; None where its parts are not the same."""

    network: str
    npu: str
    generator: str
    made: Instrumented | None

    def ratios(self) -> tuple[float, float]:
        """Return the sum of parts over the whole, and without their starts."""
        if self.made is None:
            return 0.0, 0.0
        starts = sum(part.start_cycles for part in self.made.parts[1:])
        whole = self.made.whole_cycles
        return self.made.cycles / whole, (self.made.cycles - starts) / whole


def measured(networks: list[Path], npus: list[str], generators: list[str]) -> Iterator[Row]:
    """Compile and cut every network for every NPU."""
    for path in networks:
        for npu in npus:
            for generator in generators:
                options = {"generator": generator}
                artifact = mizzen.compile(path, npu, prove="off", target_options=options)
                try:
                    made = instrument(artifact)
                except MizzenError as error:
                    if error.diagnostic.code not in NOT_EQUAL:
                        raise
                    made = None
                yield Row(path.stem, npu, generator, made)


def figures_of(rows: list[Row]) -> dict[str, float]:
    """Return the figures by name."""
    cut = [row for row in rows if row.made is not None]
    sums, works = zip(*(row.ratios() for row in cut), strict=True)
    return {
        "sum_over_whole": statistics.fmean(sums),
        "worst": max(sums),
        "work_over_whole": statistics.fmean(works),
        "added_over_whole": statistics.fmean(sums) - 1.0,
        "unequal": len(rows) - len(cut),
        "parts": sum(len(row.made.parts) for row in cut if row.made is not None),
    }


def table(rows: list[Row]) -> str:
    """Return the rows as a table of Markdown."""
    lines = [
        "| network | NPU | code | parts | whole | sum of parts | added | without starts |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        made, (whole, work) = row.made, row.ratios()
        if made is None:
            lines.append(f"| {row.network} | {row.npu} | {row.generator} | unequal | | | | |")
            continue
        lines.append(
            f"| {row.network} | {row.npu} | {row.generator} | {len(made.parts)} "
            f"| {made.whole_cycles:,} | {made.cycles:,} | {100 * whole - 100:+.1f} % "
            f"| {100 * work - 100:+.1f} % |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("networks", nargs="*", help="names of networks of MIZZEN_MODELS")
    parser.add_argument("--on", action="append", choices=NPUS, help="NPUs (default: all)")
    parser.add_argument("--generator", action="append", choices=GENERATORS)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    names = options.networks or NETWORKS
    paths = [DIGITS, *(MODELS / f"{name}.tflite" for name in names if name != DIGITS.stem)]
    rows = list(measured(paths, options.on or list(NPUS), options.generator or list(GENERATORS)))
    figures = figures_of(rows)
    print(json.dumps({"figures": figures}, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
