"""What becomes of ONNX's own cases of its operators, as they are and as quantised twins.

All cases of the package onnx are read and lowered: what is not must be refused with a reason, and
nothing may end in another exception (`tracebacks`). Cases of one operator on reals get twins, with
QuantizeLinear and DequantizeLinear around it: those that are lowered are computed by the graph's
NumPy reference, and held against ONNX's implementation in float32 (`off` counts twins that are more
than a step off, `differ` elements that are not equal) and ONNX Runtime (`off_runtime`).

    python benchmarks/onnx_cases.py [--types int8 uint8] [--kinds Relu Conv] [--json]

--reasons lists why twins are not lowered.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.frontends.onnx.cases import Trial, collected, outcome, tried, twin_of

from mizzen.diagnostics import MizzenError

TRACEBACK = "traceback"

DEVIANT = ("test_softmax_large_number", "test_logsoftmax_large_number")
"""Of scores ten thousand apart, which 16 bits have in steps of a third."""


def outcomes(cases: Sequence[Any]) -> Counter[str]:
    """Return how many cases end in which way: lowered, on the host, refused with a code."""
    ends: Counter[str] = Counter()
    for case in cases:
        try:
            ends[outcome(case.model.SerializeToString(), case.name)] += 1
        except (MizzenError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError,
                AttributeError, RuntimeError, RecursionError) as error:  # fmt: skip
            print(f"{case.name}: {type(error).__name__}: {error}", file=sys.stderr)
            ends[TRACEBACK] += 1
    return ends


def trials(cases: Sequence[Any], dtype: str) -> Iterator[tuple[str, Trial]]:
    """Return what becomes of each case's twin."""
    for case in cases:
        twin = twin_of(case, dtype)
        if twin is not None:
            yield case.name, tried(twin, case.name, runtime=True)


def figures_of(done: dict[str, Trial], dtype: str) -> dict[str, int]:
    """Return the figures of one type's twins."""
    lowered = {name: trial for name, trial in done.items() if not trial.reason}
    usual = [trial for name, trial in lowered.items() if dtype != "int16" or name not in DEVIANT]
    return {
        f"twins_{dtype}": len(done),
        f"lowered_{dtype}": len(lowered),
        f"elements_{dtype}": sum(trial.elements for trial in usual),
        f"differ_{dtype}": sum(trial.differ for trial in usual),
        f"off_{dtype}": sum(trial.most > 1 for trial in usual),
        f"off_runtime_{dtype}": sum((trial.runtime or 0) > 1 for trial in usual),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", nargs="+", default=["int8", "uint8", "int16"],
                        choices=["int8", "uint8", "int16"], help="types of twins")  # fmt: skip
    parser.add_argument("--kinds", nargs="+", help="types of operators, such as Conv; or all")
    parser.add_argument("--reasons", action="store_true", help="say why twins are not lowered")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.process_time()
    cases = [
        case
        for case in collected()
        if not options.kinds or any(node.op_type in options.kinds for node in case.model.graph.node)
    ]
    ends = outcomes(cases)
    figures: dict[str, float] = {"cases": len(cases), "tracebacks": ends.pop(TRACEBACK, 0)}
    figures |= {end.replace(" ", "_"): count for end, count in sorted(ends.items())}
    why: Counter[str] = Counter()
    for dtype in options.types:
        done = dict(trials(cases, dtype))
        figures |= figures_of(done, dtype)
        why.update(trial.reason for trial in done.values() if trial.reason)
    figures["case_seconds"] = time.process_time() - start
    if options.json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:<22}{value:,.1f}" if isinstance(value, float) else f"{name:<22}{value:,}")
    for reason, count in why.most_common() if options.reasons else ():
        print(f"{count:>4} {reason}")


if __name__ == "__main__":
    main()
