"""Write the reference's page of ONNX operators: which are lowered to integers, in which types.

`make conformance` runs ``python -m docs.onnx_operators_page``. The rows are the registry's; the
columns of types are measured on quantised twins of ONNX's own operator cases
(`tests/frontends/onnx/cases.py`). Tests hold the rows to the registry, and run a sample.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.frontends.onnx.cases import Trial, collected, kinds_of, tried, twin_of

from mizzen.frontends.onnx.operators import OPERATORS, Missing, Operator

PAGE = Path(__file__).with_name("reference") / "onnx-operators.md"
TYPES = ("int8", "uint8", "int16")

INTRODUCTION = """\
# ONNX operators

This table shows which operators of ONNX become integers, and in which types of activations. They
become integers between DequantizeLinear and QuantizeLinear.

- `8 of 10` counts ONNX's own cases of the operator, each quantised. Of ten, eight are lowered.
- The results of lowered cases are at most one step from ONNX's float32 implementation. A larger
  difference is reported in the table.
- The other cases are refused with a reason, and ONNX Runtime computes them on the host.
- A dash means that ONNX has no case that can be quantised.

A lowered operator must also keep to the [rules of the NPU](tosa-operations.md).

QOperator files (QLinearConv, QGemm and the like) are read as these operators with DequantizeLinear
and QuantizeLinear around them. Results that depend only on constants are computed when the file is
read.
`make conformance` measures this.

| Operator | Since | int8 | uint8 | int16 |
|---|--:|---|---|---|
"""

REFUSED = """
## Without a form on integers

| Operator | Why | What to do |
|---|---|---|
"""


def trials(kinds: Sequence[str] = ()) -> dict[str, dict[str, list[Trial]]]:
    """Return what became of the twins of ONNX's cases, by operator and type."""
    done: dict[str, dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of casts that overflow, in cases of the package's own
        cases = collected()
    for case in cases:
        names = kinds_of(case)
        if len(names) != 1 or (kinds and names[0] not in kinds):
            continue
        for dtype in TYPES:
            trial = _trial(case, dtype)
            if trial is not None:
                done[names[0]][dtype].append(trial)
    return done


def _trial(case: Any, dtype: str) -> Trial | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = twin_of(case, dtype)
        return None if twin is None else tried(twin, case.name)


def lowered() -> list[Operator]:
    """Return the operators that have a lowering, in the order of their names."""
    rows = [each for each in OPERATORS.values() if not isinstance(each.form, Missing)]
    return sorted(rows, key=lambda each: (each.domain, each.kind))


def row(operator: Operator, by_type: dict[str, list[Trial]]) -> str:
    """Return the row of an operator."""
    name = f"{operator.domain}.{operator.kind}" if operator.domain else operator.kind
    cells = [cell([] if operator.domain else by_type.get(dtype, [])) for dtype in TYPES]
    return f"| `{name}` | {operator.since} | {' | '.join(cells)} |"


def cell(done: Sequence[Trial]) -> str:
    """Say how many of some twins are lowered, and how far they are off if more than a step."""
    if not done:
        return "-"
    right = [trial for trial in done if not trial.reason]
    most = max((trial.most for trial in right), default=0)
    return f"{len(right)} of {len(done)}" + (f", {most} steps" if most > 1 else "")


def refused() -> Iterator[str]:
    """Return the rows of operators without a lowering."""
    for operator in sorted(OPERATORS.values(), key=lambda each: (each.domain, each.kind)):
        if isinstance(operator.form, Missing):
            *_, reason = operator.form.reason.rpartition("here: ")
            name = f"{operator.domain}.{operator.kind}" if operator.domain else operator.kind
            yield f"| `{name}` | {reason} | {operator.form.help or '-'} |"


def page() -> str:
    """Return the whole page."""
    done = trials()
    rows = [row(operator, done.get(operator.kind, {})) for operator in lowered()]
    return INTRODUCTION + "\n".join(rows) + "\n" + REFUSED + "\n".join(refused()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
