"""Compare real networks with TensorFlow Lite Micro layer by layer: what differs, and what it takes.

    python benchmarks/compare.py [--models DIR] [--json]

Every `.tflite` of the folder is compiled for three NPUs and compared. `compare_over_compile` is the
geometric mean of the time of a comparison over that of the compilation, proof included.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path

from mizzen.analysis.comparison.exactness import Inputs, run, sides
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.diagnostics import MizzenWarning
from mizzen.report.comparison import Outcome

MODELS = Path(__file__).resolve().parents[1].parent / "shared" / "models"
ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")


def main() -> None:
    """Compare everything, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", MizzenWarning)
    ratios: list[float] = []
    differing = seen = layers = 0
    for file in sorted(options.models.glob("*.tflite")):
        for accelerator in ACCELERATORS:
            target = resolve_target(CompileOptions(accelerator))
            start = time.process_time()
            (compared,) = sides(file, target)
            compiled = time.process_time()
            found = run(compared, target, Inputs())
            done = time.process_time()
            ratios.append((done - compiled) / (compiled - start))
            differing += len(found.wrong)
            seen += sum(row.elements > 0 for row in found.layers)
            layers += len(found.layers)
            if not options.json:
                said = f"{found.count(Outcome.EQUAL)} of {len(found.layers)} layers equal"
                print(f"{file.name:32} {accelerator:14} {said}, {ratios[-1]:.2f} of compile")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    figures = {
        "compare_over_compile": mean,
        "layers_differing": differing,
        "layers_seen": seen / layers,
    }
    print(json.dumps({"figures": figures}) if options.json else figures)


if __name__ == "__main__":
    main()
