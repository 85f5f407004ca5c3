"""Compile random programs, and compare what comes with what must.

Run ``python benchmarks/fuzz.py --family u55 --programs 100``, with ``--json`` for the figures,
``--kind torch`` for PyTorch modules instead of TFLite networks, ``--log FILE`` to go on where an
earlier run stopped:

`silent_differences`          programs whose artifact gives other numbers than the reference
`raw_exceptions`              programs that ended in an exception that is no diagnostic
`programs`                    programs that were compiled and compared
`uncompared`                  programs that no reference computes, or that no compiler takes
`refused`                     programs that the compiler core takes, and Mizzen refuses
`slow`                        programs that took longer than a minute, and were given up
`operators_on_npu_fraction`   of the operators of all programs

Inputs are others than the proof of a compilation executes: any integers, ends, and small ones.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz_judge import Verdict, judge
from fuzz_networks import network

SLOW_SECONDS = 60
FOUND = frozenset(("silent", "raw", "refused", "slow"))
"""Verdicts that someone has to look at."""

Row = dict[str, Any]


class TooSlowError(BaseException):
    """Ends a program that takes too long; nothing on the way catches it."""


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise TooSlowError


def judged(kind: str, family: str, seed: int, number: int) -> Verdict:
    """Judge a program, whatever happens."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(SLOW_SECONDS)
    try:
        if kind == "torch":
            from fuzz_torch import judge as judge_torch

            return judge_torch(family, seed, number)
        return judge(family, number, network(family, seed, number))
    except TooSlowError as error:
        return Verdict("slow", f"over {SLOW_SECONDS} s, at {_place(error)}")
    except Exception as error:
        return Verdict("raw", f"{type(error).__name__} at {_place(error)}: {error}")
    finally:
        signal.alarm(0)


def _place(error: BaseException) -> str:
    ours = [row for row in traceback.extract_tb(error.__traceback__) if "mizzen" in row.filename]
    row = (ours or traceback.extract_tb(error.__traceback__))[-1]
    return f"{Path(row.filename).name}:{row.lineno}"


def figures(rows: Iterable[Row]) -> dict[str, float]:
    """Return the figures of programs; see the module."""
    every = list(rows)
    kinds = Counter(row["kind"] for row in every)
    operators = sum(row["operators"] for row in every)
    return {
        "silent_differences": kinds["silent"],
        "raw_exceptions": kinds["raw"],
        "programs": kinds["right"] + kinds["silent"],
        "uncompared": kinds["nothing"],
        "refused": kinds["refused"],
        "slow": kinds["slow"],
        "operators_on_npu_fraction": sum(row["on_npu"] for row in every) / max(1, operators),
    }


def logged(log: Path | None) -> Iterator[Row]:
    """Return what earlier runs have written into a log."""
    if log is not None and log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def run(
    kind: str, family: str, seed: int, numbers: Iterable[int], log: Path | None, *, say: bool
) -> list[Row]:
    """Judge programs, but those that are in the log already."""
    rows = {row["number"]: row for row in logged(log) if row["number"] in numbers}
    for number in numbers:
        if number in rows:
            continue
        start = time.monotonic()
        verdict = judged(kind, family, seed, number)
        row = {"number": number, "whole": time.monotonic() - start, **verdict.as_dict()}
        rows[number] = row
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if say and verdict.kind in FOUND:
            print(verdict.kind, number, verdict.accelerator, verdict.text[:300], flush=True)
    return list(rows.values())


def main() -> None:
    """Judge programs, and print what was found."""
    parser = argparse.ArgumentParser(description="Compile random programs, and compare.")
    parser.add_argument("--family", choices=["u55", "u65", "u85", "n78"], default="u55")
    parser.add_argument("--kind", choices=["tflite", "torch"], default="tflite")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="file of verdicts, which a later run goes on from")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.programs)
    rows = run(
        arguments.kind, arguments.family, arguments.seed, numbers, arguments.log,
        say=not arguments.json,
    )  # fmt: skip
    if arguments.json:
        print(json.dumps(figures(rows)))
        return
    said = sum((Counter(row["said"]) for row in rows), Counter[str]())
    print(dict(said), dict(Counter(row["accelerator"] for row in rows)))
    print(figures(rows), f"{sum(row['whole'] for row in rows) / max(1, len(rows)):.2f} s each")


if __name__ == "__main__":
    main()
