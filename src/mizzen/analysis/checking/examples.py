"""Examples that came with an artifact: whether it gives what they expect.

Who wrote them computed real numbers elsewhere, so that these may be near; integers must be equal.
The tolerance is that of ExecuTorch's own runner on Arm.

Ref: ExecuTorch 1.5, examples/arm/executor_runner/arm_executor_runner.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.diagnostics import Diagnostic, Severity, fail

ABSOLUTE = RELATIVE = 0.01


@dataclass(frozen=True, slots=True)
class OutputOfExample:
    """One output of an example, beside what was expected.

    differing  numbers that are not near enough
    largest    the largest difference
    """

    example: int
    output: str
    numbers: int
    differing: int
    largest: float

    @property
    def finding(self) -> Diagnostic | None:
        """What is wrong."""
        if not self.differing:
            return None
        return Diagnostic(
            "E694",
            f"{self.output} of example {self.example} must be what the file expects, and "
            f"{self.differing} of {self.numbers} numbers differ, by {self.largest:.6g} at most",
            Severity.ERROR,
            help="find out whether the program or the expectation is of another version",
        )

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "example": self.example,
            "output": self.output,
            "numbers": self.numbers,
            "differing": self.differing,
            "largest_difference": self.largest,
        }


def compare_examples(artifact: Artifact) -> Iterator[OutputOfExample]:
    """Run every example. E695 for one that does not fit the artifact, E6xx and E7xx for faults."""
    for place, example in enumerate(artifact.examples):
        if not example.expected:
            continue
        _require_fit(artifact, place)
        results = artifact.run(*example.inputs)
        outputs = results if isinstance(results, tuple) else (results,)
        named = zip(artifact.outputs, outputs, example.expected, strict=True)
        for info, came, wanted in named:
            differing, largest = _differences(np.asarray(came), wanted)
            yield OutputOfExample(place, info.name, wanted.size, differing, largest)


def _require_fit(artifact: Artifact, place: int) -> None:
    example = artifact.examples[place]
    for word, infos, arrays in (
        ("inputs", artifact.inputs, example.inputs),
        ("outputs", artifact.outputs, example.expected),
    ):
        wanted = [(info.dtype, info.shape) for info in infos]
        came = [(array.dtype, array.shape) for array in arrays]
        if wanted != came:
            raise fail(
                "E695",
                f"example {place} must have the program's {word}, {_told(wanted)}, not "
                f"{_told(came)}",
                help="the examples are of another program: make the file again",
            )


def _told(tensors: list[tuple[np.dtype[np.generic], tuple[int, ...]]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in tensors) or "none"


def _differences(came: Array, wanted: Array) -> tuple[int, float]:
    if wanted.dtype.kind != "f":
        apart = np.abs(came.astype(np.float64) - wanted.astype(np.float64))
        return int(np.count_nonzero(came != wanted)), float(apart.max(initial=0.0))
    near = np.isclose(came, wanted, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    apart = np.abs(came.astype(np.float64) - wanted.astype(np.float64))
    return int(np.count_nonzero(~near)), float(np.nan_to_num(apart).max(initial=0.0))
