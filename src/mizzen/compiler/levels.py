"""Say where a requantisation leaves little of a tensor: several in one scale, or a wrong scale.

An operator that hands elements on, or adds them to others, gives them in steps of its result. Where
these are large beside the numbers that a tensor can hold, few levels come out, whatever the kernels
do: scores from 0 to 1 beside boxes up to 640 are all the same number. Every kernel does so, so the
proof finds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Diagnostic, Origin, Severity
from mizzen.frontends.tflite import Model, Operator, Subgraph, Tensor

CODE = "W319"

MOST_CONTENTS = 64
"""Tensors that are followed into one; what a concatenation of more holds is as one."""


@dataclass(frozen=True, slots=True)
class Content:
    """A tensor whose elements lie in another, or in itself.

    low, high  the real numbers that it can hold
    bits       of its integers
    """

    name: str
    low: float
    high: float
    bits: int


@dataclass(frozen=True, slots=True)
class Steps:
    """How a tensor is quantised: the size of a step, and the ends of what it can hold."""

    size: float
    low: float
    high: float
    bits: int

    def levels_of(self, content: Content) -> int:
        """Return how many different numbers of this tensor a content's numbers become."""
        return self._levels(min(content.high, self.high) - max(content.low, self.low))

    def levels_of_summand(self, content: Content) -> int:
        """Likewise of what something is added to, which shifts it: its width alone counts."""
        return self._levels(min(content.high - content.low, self.high - self.low))

    def _levels(self, span: float) -> int:
        return 1 + max(0, math.floor(span / self.size + 0.5))

    def levels_wanted(self, content: Content) -> int:
        """Return how many a content should become: with half of its bits, a signal is 26 dB above
        its rounding for 8 bits, and 50 dB for 16; networks lose their accuracy about there."""
        return 1 << (min(self.bits, content.bits) // 2)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What may be done about few levels, in the words of the help."""

    help: str


JOINED = Remedy(
    "let the network give these tensors as outputs of their own, each with its own scale, or scale "
    "them to one range before they are joined"
)
ADDED = Remedy(
    "where the smaller of the two matters, scale it up before, or quantise the operator with 16 "
    "bits"
)
RESCALED = Remedy("quantise it again, with calibration data that reaches what this tensor holds")

_MOVES = (
    "BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DEPTH_TO_SPACE EXPAND_DIMS GATHER GATHER_ND "
    "MAXIMUM MAX_POOL_2D MINIMUM MIRROR_PAD PACK PAD PADV2 QUANTIZE RESHAPE RESIZE_BILINEAR "
    "RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT SELECT_V2 SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH "
    "SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE TRANSPOSE UNPACK"
)
MOVES = frozenset(_MOVES.split())
"""Operators of whose inputs elements come out, as far as they fit."""

JOINS = frozenset({"CONCATENATION", "PACK"})
"""Operators that give several tensors one scale."""

SUMS = frozenset({"ADD", "SUB"})
"""Operators to whose result each input adds its own numbers."""

PRODUCTS = frozenset({"MUL"})
"""Operators whose result is as large as both inputs together."""


def few_levels(model: Model) -> Iterator[Diagnostic]:
    """Say which operators of a network leave a tensor too few levels: W319."""
    for subgraph in model.subgraphs:
        contents: dict[int, tuple[Content, ...]] = {}
        for operator in subgraph.operators:
            yield from _of_operator(model, subgraph, operator, contents)


def _of_operator(
    model: Model,
    subgraph: Subgraph,
    operator: Operator,
    contents: dict[int, tuple[Content, ...]],
) -> Iterator[Diagnostic]:
    given = [tensor for tensor in subgraph.present(operator.inputs) if tensor.data is None]
    for result in subgraph.present(operator.outputs):
        steps = steps_of(result)
        if steps is None:
            continue
        own = own_content(result)
        handed = _handed(operator, given, contents, result)
        kept: list[Content] = []
        levels = steps.levels_of_summand if operator.kind in SUMS else steps.levels_of
        for content in handed:
            if (left := levels(content)) >= steps.levels_wanted(content):
                kept.append(content)
            else:
                way, origin = _way(subgraph, operator, result), model.origin(operator, subgraph)
                yield lost(content, left, steps, result.name, origin, way)
        moved = tuple(kept[:MOST_CONTENTS]) if operator.kind in MOVES else ()
        contents[result.index] = moved or own


def _handed(
    operator: Operator,
    given: Iterable[Tensor],
    contents: Mapping[int, tuple[Content, ...]],
    result: Tensor,
) -> tuple[Content, ...]:
    """Return whose numbers an operator hands on to its result."""
    taken = [contents.get(tensor.index) or own_content(tensor) for tensor in given]
    if operator.kind in MOVES:
        by_name = {content.name: content for of_tensor in taken for content in of_tensor}
        return tuple(by_name.values())
    if operator.kind in SUMS:
        return tuple(content for tensor in given for content in own_content(tensor))
    if operator.kind in PRODUCTS and len(taken) > 1:
        return _product(
            [content for tensor in given for content in own_content(tensor)], result.name
        )
    return ()


def _way(subgraph: Subgraph, operator: Operator, result: Tensor) -> Remedy:
    """Return the remedy: what is joined with others later was rescaled for that."""
    users = {user.kind for user in subgraph.operators if result.index in user.inputs}
    if operator.kind in JOINS or (operator.kind in MOVES and users & JOINS):
        return JOINED
    return ADDED if operator.kind in SUMS else RESCALED


def _product(factors: list[Content], name: str) -> tuple[Content, ...]:
    if len(factors) != 2:
        return ()
    one, other = factors
    ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return (Content(name, min(ends), max(ends), min(one.bits, other.bits)),)


def steps_of(tensor: Tensor) -> Steps | None:
    """Return how a tensor of one scale is quantised; None for others."""
    quantization, dtype = tensor.quantization, tensor.dtype
    if quantization is None or len(quantization.scale) != 1 or dtype is None:
        return None
    (scale,) = quantization.scale
    if dtype.kind not in "iu" or dtype.itemsize > 2 or not 0 < scale < math.inf:
        return None
    limits = np.iinfo(dtype.name)
    zero = quantization.zero_point[0] if quantization.zero_point else 0
    ends = (scale * (int(limits.min) - zero), scale * (int(limits.max) - zero))
    return Steps(scale, *ends, 8 * dtype.itemsize)


def own_content(tensor: Tensor) -> tuple[Content, ...]:
    """Return a tensor as its own content, if it is quantised."""
    steps = steps_of(tensor)
    return () if steps is None else (Content(tensor.name, steps.low, steps.high, steps.bits),)


def lost(
    content: Content, left: int, steps: Steps, result: str, origin: Origin, way: Remedy
) -> Diagnostic:
    """Say that few levels of a content are left."""
    return Diagnostic(
        CODE,
        f'"{content.name}" must keep at least {steps.levels_wanted(content)} different numbers in '
        f'"{result}", and keeps {left}: it holds {content.low:.3g} to {content.high:.3g}, and a '
        f"step is {steps.size:.3g} there",
        Severity.WARNING,
        origin,
        help=way.help,
    )
