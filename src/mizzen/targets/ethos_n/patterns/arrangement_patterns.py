"""Elements put elsewhere: shapes, concatenations, parts, blocks of channels, larger planes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.graph import Array, Operation, ResizeMode, Value
from mizzen.ops import data_layout, image
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Concat, Transpose
from mizzen.patterns import Const, Match, Pattern, Reject, Var, chain, op
from mizzen.targets.ethos_n.network import (
    Concatenation,
    DepthToSpace,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Split,
)
from mizzen.targets.ethos_n.patterns.graph_values import (
    Emission,
    Findings,
    contents,
    filled,
    quantization_info,
)

X = Var("x")
RESHAPED = op((data_layout.Reshape, Identity), X)
MOVED = chain(op((data_layout.Reshape, Transpose), X, once=True))
CONCATENATED = op(Concat)
SCALE, OFFSET, BORDER = Const("scale"), Const("offset"), Const("border")
RESIZED = op(image.Resize, X, SCALE, OFFSET, BORDER)


def _moves_blocks(match: Match) -> Reject | None:
    """Channels become blocks of the plane."""
    source, result = match[X].shape, match.root.result.shape
    images = len(source) == len(result) == 4 and min(source) > 0
    block, odd = divmod(result[1], source[1]) if images else (0, 0)
    if block < 2 or odd or result[2] != source[2] * block:
        return Reject("an image must become one of a plane larger by a whole number")
    return None


PATTERNS = {
    "reshape": Pattern("ethos-n.reshape", RESHAPED),
    "concatenate": Pattern("ethos-n.qnn.concatenate", CONCATENATED),
    "depth_to_space": Pattern("ethos-n.nn.depth_to_space", MOVED, (_moves_blocks,)),
    "qnn_resize": Pattern("ethos-n.qnn_resize", RESIZED),
}


def reshaped(emission: Emission, match: Match) -> None:
    """Let the result have the elements of what it was."""
    _check(match[X], match.root.result)
    emission.alias(match.root.result, match[X])


def reshape_asked(emission: Emission, match: Match) -> None:
    """Add a change of shape as such, to ask about it."""
    result = match.root.result
    _check(match[X], result)
    emission.bind(result, emission.add(Reshape(filled(result.shape)), emission.operand(match[X])))


def concatenated(emission: Emission, match: Match) -> None:
    """Add a concatenation; integers stay what they are."""
    concat, result = match[CONCATENATED], match.root.result
    _check(*dict.fromkeys(concat.input1), result)
    output = quantization_info(result)
    parts = [emission.reinterpreted(emission.operand(value), output) for value in concat.input1]
    axis = concat.axis % max(result.type.rank, 1)
    emission.bind(result, emission.add(Concatenation(axis, output), *parts))


def spread(emission: Emission, match: Match) -> None:
    """Add blocks of the plane made of channels."""
    source, result = match[X], match.root.result
    findings = Findings()
    findings.feature_map(source, result)
    block = result.shape[1] // source.shape[1]
    elements = np.arange(source.type.elements).reshape(source.shape)
    given = elements
    for step in reversed(match[MOVED]):
        given = _moved(step, given)
    mode = next((name for name, wanted in _modes(elements, block) if _same(wanted, given)), "none")
    findings.need(
        mode == "DCR",
        "mode",
        f"mode={mode}, mode must = DCR",
        limit="channels that hold blocks first, then the new channels (DCR)",
        actual=mode,
        help="exchange the channels of the weights before, so that blocks come first",
    )
    findings.settle()
    emission.bind(result, emission.add(DepthToSpace(block), emission.operand(source)))


def _moved(step: Operation, elements: Array) -> Array:
    if isinstance(step, Transpose):
        return elements.transpose(step.perms)
    return elements.reshape(step.result.shape)


def _modes(elements: Array, block: int) -> Iterator[tuple[str, Array]]:
    """Return the images that the two ways to read channels as blocks make."""
    n, height, width, channels = elements.shape
    rest, odd = divmod(channels, block * block)
    if odd:
        return
    shape = (n, height * block, width * block, rest)
    blocks_first = elements.reshape(n, height, width, block, block, rest)
    yield "DCR", blocks_first.transpose(0, 1, 3, 2, 4, 5).reshape(shape)
    blocks_last = elements.reshape(n, height, width, rest, block, block)
    yield "CRD", blocks_last.transpose(0, 1, 4, 2, 5, 3).reshape(shape)


def _same(wanted: Array, given: Array) -> bool:
    return wanted.shape == given.shape and bool((wanted == given).all())


def resized(emission: Emission, match: Match) -> None:
    """Add a larger plane, of which each pixel is the nearest one towards the origin."""
    source, result = match[X], match.root.result
    findings = Findings()
    findings.feature_map(source, result)
    mode = match[RESIZED].mode
    findings.need(
        mode is ResizeMode.NEAREST,
        "mode",
        f"mode={mode.value}, mode must = nearest",
        limit="the nearest pixel",
        actual=mode.value,
        help="resize to the nearest pixel",
    )
    findings.settle()
    _, height, width, _ = result.shape
    scale, offset = contents(match[SCALE]).tolist(), contents(match[OFFSET]).tolist()
    for axis, name in ((1, "height"), (2, "width")):
        numerator, denominator = scale[2 * axis - 2 : 2 * axis]
        places = _places(result.shape[axis], source.shape[axis], numerator, denominator,
                        offset[axis - 1])  # fmt: skip
        findings.need(
            bool((places == np.arange(result.shape[axis]) // 2).all()),
            "samples",
            f"samples of {name} must be every pixel twice",
            limit="every pixel twice",
            help="resize by 2, with neither corners aligned nor samples from elsewhere",
        )
    findings.settle()
    output = quantization_info(result)
    operation = Resize(ResizeAlgorithm.NEAREST_NEIGHBOUR, height, width, output)
    emission.bind(result, emission.add(operation, emission.operand(source)))


def _places(size: int, given: int, numerator: int, denominator: int, offset: int) -> Array:
    """Return which pixels RESIZE takes. Ref: TOSA 1.0, 2.12.1."""
    places = np.arange(size) * denominator + offset
    whole, rest = places // numerator, places % numerator
    last = np.minimum(whole + 1, given - 1)
    return np.where(2 * rest >= numerator, last, np.maximum(whole, 0))


@dataclass(frozen=True, slots=True)
class Parts:
    """SLICEs that cut a value along an axis into parts, in order, nothing left out."""

    value: Value
    axis: int
    slices: tuple[Operation, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents of the parts."""
        return tuple(slice_.result.shape[self.axis] for slice_ in self.slices)


def parts_of(operations: Sequence[Operation]) -> Iterator[Parts]:
    """Find values that some SLICEs cut into parts; each SLICE is in one of them at most.

    Where several could follow one another, those of the same group do.
    """
    cuts: dict[tuple[Value, int], dict[int, list[Operation]]] = {}
    for operation in operations:
        axis = _only_axis(operation)
        if axis is not None and isinstance(operation, data_layout.Slice):
            starts = cuts.setdefault((operation.input1, axis), {})
            start = int(contents(operation.start).reshape(-1)[axis])
            starts.setdefault(start, []).append(operation)
    for (value, axis), starts in cuts.items():
        for first in starts.get(0, ()):
            run = _row(first, value.shape[axis], axis, starts)
            if run:
                yield Parts(value, axis, tuple(run))


def _row(
    first: Operation, extent: int, axis: int, starts: dict[int, list[Operation]]
) -> list[Operation]:
    """Return SLICEs that follow one another to the end, and take them out; none if they do not."""
    run = [first]
    end = first.result.shape[axis]
    while end < extent:
        following = [each for each in starts.get(end, ()) if each not in run]
        if not following:
            return []
        same = [each for each in following if each.group == first.group]
        run.append((same or following)[0])
        end += run[-1].result.shape[axis]
    if end > extent:
        return []
    for start, starting in starts.items():
        # The first ones are being gone through.
        starts[start] = starting if start == 0 else [each for each in starting if each not in run]
    return run


def _only_axis(operation: Operation) -> int | None:
    """Return the axis along which a SLICE cuts, if it is one axis."""
    if not isinstance(operation, data_layout.Slice) or operation.start.constant is None:
        return None
    given, taken = operation.input1.shape, operation.result.shape
    axes = [axis for axis, (a, b) in enumerate(zip(given, taken, strict=True)) if a != b]
    return axes[0] if len(axes) == 1 else None


def split(emission: Emission, parts: Parts) -> None:
    """Add a value's parts."""
    results = [slice_.result for slice_ in parts.slices]
    _check(parts.value, *results)
    source = emission.operand(parts.value)
    node = emission.add_node(Split(parts.axis, parts.sizes), source)
    for result, operand in zip(results, node.outputs, strict=True):
        emission.bind(result, operand)


def _check(*values: Value) -> None:
    findings = Findings()
    findings.feature_map(*values)
    findings.settle()
