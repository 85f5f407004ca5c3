"""Operators whose results on the NPU may differ from TFLite's kernels by a documented step.

Each is a table that Vela computes in another precision than the kernel; nothing can be done about
it without computing the table again. Ref: docs/explanation/exceptions.md.
"""

from __future__ import annotations

STEPS = {
    ("SOFTMAX", "INT16"): 1,
    ("GELU", "INT8"): 1,
    ("GELU", "UINT8"): 1,
}
"""The largest difference, in integers of the output, by operator and type."""


def bound_of(kind: str, dtype: str) -> int | None:
    """Return the largest documented difference of an operator's output of a type."""
    return STEPS.get((kind, dtype))
