"""What a file of a floating-point network is to the verb, whatever its form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mizzen.calibration.scheme import Method, Scheme
from mizzen.calibration.seen import Sample, Seen
from mizzen.diagnostics import Diagnostic

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.analysis.evaluation.reference import Subject
    from mizzen.artifact.interface import TensorInfo
    from mizzen.report.precision import Precision

    Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FloatOperator:
    """An operator of a quantised network that computes in floating point."""

    index: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A quantised file.

    floating   operators of it that compute in floating point
    warnings   of the quantiser
    """

    data: bytes
    floating: tuple[FloatOperator, ...]
    warnings: tuple[Diagnostic, ...] = ()


class Source(Protocol):
    """A floating-point network, cut where that was asked for.

    form     of its file: ``ONNX``
    suffix   how names of such files end
    methods  ways to find ranges, the usual one first
    said     what was decided for the user
    """

    name: str
    form: str
    suffix: str
    methods: tuple[Method, ...]
    said: tuple[str, ...]

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What it takes."""
        ...

    def seen(self, samples: Iterable[Sample], told: Callable[[int], None]) -> Seen:
        """Infer the samples, and return what every tensor was; `told` the number of those done."""
        ...

    def quantised(self, samples: Sequence[Sample], scheme: Scheme, seen: Seen) -> Made:
        """Return the quantised file. E198 for an operator that there is not, E199 for packages."""
        ...

    def advice(self, made: Made, seen: Seen) -> Iterable[Diagnostic]:
        """Return where the quantised network loses more than its bits, beside single layers."""
        ...

    def precision(self, made: Made, arrays: Sequence[Array]) -> Precision:
        """Hold the quantised network against this one, layer by layer."""
        ...

    def networks(self, made: Made) -> tuple[Subject, Subject]:
        """Return the quantised network and this one, to be judged by labels."""
        ...
