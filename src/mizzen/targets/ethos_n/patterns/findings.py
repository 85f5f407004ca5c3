"""What of a composite does not fit the NPU: parameters are read to the end, problems pile up.

The texts of what is common to all composites are those of Apache TVM's Ethos-N integration, so
that whoever knows its logs finds them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mizzen.diagnostics import Reason
from mizzen.graph import DType, Value

SOURCE = "Apache TVM v0.14.0, Ethos-N: extraction of parameters"
MOST_DIMENSIONS = 4
TYPES = (DType.INT8, DType.UINT8)
"""Types of feature maps."""


class UnfitError(Exception):
    """Operations are no composite that the NPU has; `reasons` say why."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__(accumulated(reasons))
        self.reasons = tuple(reasons)


def accumulated(reasons: Iterable[Reason]) -> str:
    """Return all messages as one text: joined by "; ", with ";" behind the last."""
    texts = [reason.message for reason in reasons]
    return f"{'; '.join(texts)};" if texts else ""


class Findings:
    """Problems of one composite, in the order in which they were found."""

    def __init__(self) -> None:
        self.reasons: list[Reason] = []

    def need(
        self,
        holds: bool,
        rule: str,
        message: str,
        *,
        limit: str = "",
        actual: str = "",
        help: str = "",
    ) -> None:
        """Note a problem unless a condition holds."""
        if not holds:
            self.reasons.append(Reason(rule, message, limit, actual, help, SOURCE))

    def feature_map(self, *values: Value) -> None:
        """Note what keeps values from being feature maps: batch, type, dimensions."""
        for value in values:
            self._batch(value)
            self.types([value])
            rank = value.type.rank
            self.need(
                rank <= MOST_DIMENSIONS,
                "dimensions",
                f"dimensions={rank}, dimensions must be <= {MOST_DIMENSIONS}",
                limit=f"at most {MOST_DIMENSIONS} dimensions",
                actual=str(rank),
                help="join dimensions that lie behind each other",
            )

    def types(self, values: Iterable[Value]) -> None:
        """Note values whose elements are not of 8 bits."""
        for value in values:
            dtype = _numpy_name(value.dtype)
            self.need(
                value.dtype in TYPES,
                "type",
                f"dtype='{dtype}', dtype must be either uint8, int8 or int32",
                limit="uint8 or int8",
                actual=dtype,
                help="quantise it to 8 bits",
            )

    def _batch(self, value: Value) -> None:
        size = value.shape[0] if value.shape else 1
        self.need(
            size == 1,
            "batch",
            f"batch size={size}, batch size must = 1",
            limit="a batch of 1",
            actual=str(size),
            help="convert the network for a batch of 1, and run it once for each input",
        )

    def settle(self) -> None:
        """Raise UnfitError if anything was noted."""
        if self.reasons:
            raise UnfitError(self.reasons)


def unfit(
    rule: str, message: str, *, help: str = "", limit: str = "", actual: str = ""
) -> UnfitError:
    """Make the error of one problem, for `raise`."""
    return UnfitError([Reason(rule, message, limit, actual, help, SOURCE)])


def _numpy_name(dtype: DType) -> str:
    return {DType.BOOL: "bool", DType.SHAPE: "shape"}.get(dtype, dtype.numpy.name)
