"""Processor time of `mizzen evaluate` over TFLite Micro's own, on the same 1,000 keyword inputs.

Run ``python benchmarks/evaluate.py`` for a table, with ``--json`` for the figure: `evaluate_ratio`
is the median over rounds of the processor's seconds of ``mizzen evaluate`` on the compiled network
(one job), over those of a process that reads the same file, infers the same inputs one by one with
the package tflite-micro on the original network, and counts how often the label came.

Both are whole processes, the start of Python and all imports included, and both say the same
accuracy. Each is counted with its children, and finds its modules' bytecode in a cache, as programs
that are installed do: a first round, which is not counted, fills it.

The network is MLPerf Tiny's `kws_ref_model`, of the folder that MIZZEN_MODELS names, compiled for
ethos-u55-128.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import mizzen

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
NETWORK = MODELS / "kws_ref_model.tflite"
ACCELERATOR = "ethos-u55-128"
INPUTS = 1000
CLASSES = 12
ROUNDS = 7

TFLM = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
data = np.load(sys.argv[2])
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=1 << 20)
right = 0
for x, label in zip(data["x"], data["labels"]):
    interpreter.set_input(x[np.newaxis], 0)
    interpreter.invoke()
    right += int(interpreter.get_output(0).argmax() == label)
print(right / len(data["x"]))
"""


@dataclass(frozen=True)
class Round:
    """Seconds of the processor, of both within the same moment, and the accuracies they say."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def cached(folder: Path) -> dict[str, str]:
    """Return this environment with a cache of bytecode in a folder."""
    found = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def spent(command: list[str], environment: dict[str, str]) -> tuple[float, str]:
    """Return the processor's seconds of a command with its children, and what it prints."""
    start = os.times()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    end = os.times()
    user = end.children_user - start.children_user
    return user + end.children_system - start.children_system, done.stdout


def measure(folder: Path) -> Round:
    environment = cached(folder)
    ours, answer = spent(
        [sys.executable, "-m", "mizzen", "evaluate", str(folder / "net_vela.tflite"),
         "--data", str(folder / "set.npz"), "--json", "--quiet"],
        environment,
    )  # fmt: skip
    theirs, printed = spent(
        [sys.executable, "-c", TFLM, str(NETWORK), str(folder / "set.npz")], environment
    )
    assert json.loads(answer)["metrics"]["top1"] == float(printed)
    return Round(ours, theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mizzen.compile(NETWORK, ACCELERATOR, prove="off").save(folder / "net_vela.tflite")
        x = rng.integers(-128, 128, (INPUTS, 49, 10, 1), np.int8)
        np.savez(folder / "set.npz", x=x, labels=rng.integers(0, CLASSES, INPUTS))
        measure(folder)
        rounds = [measure(folder) for _ in range(ROUNDS)]
    if args.json:
        print(json.dumps({"figures": {"evaluate_ratio": median(row.ratio for row in rounds)}}))
        return
    print(f"{INPUTS} inputs of {NETWORK.stem}, seconds of the processor, start of Python included")
    print(f"{'mizzen evaluate':>16}{'TFLite Micro':>14}{'ratio':>7}")
    for row in rounds:
        print(f"{row.ours:16.2f}{row.theirs:14.2f}{row.ratio:7.3f}")
    print(f"evaluate_ratio {median(row.ratio for row in rounds):.3f}")


if __name__ == "__main__":
    main()
