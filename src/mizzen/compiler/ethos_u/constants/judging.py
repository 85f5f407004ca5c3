"""Hold the constants that a generator says its stream has to the network that it was made of.

What judges here knows the graph and its constants, and no rule by which streams are made: of a
layout no more than that it makes no numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.compiler.ethos_u.constants.scales import Kind, kind_of, multipliers_of, scales_of
from mizzen.compiler.ethos_u.constants.surroundings import after, rational, rationals
from mizzen.compiler.ethos_u.constants.tables import Exponentials, expected_tables
from mizzen.compiler.ethos_u.constants.weights import (
    Layer,
    Matched,
    is_multiple,
    layer_of,
    matched,
    sums_of,
    uneven,
)
from mizzen.compiler.proof.disagreement import Disagreement
from mizzen.compiler.proof.written import SAYS_SOMETHING
from mizzen.diagnostics import Origin
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.ops.elementwise import Table
from mizzen.ops.image import Resize
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.judge.witness import (
    SaidConvolution,
    SaidOperation,
    SaidTransfer,
    Witness,
)

NETWORK, WITNESS = "the network", "the schedule"

UNSIGNED_OFFSET = 128
"""By how much a byte that is read as unsigned is more than the network's integer."""

OF_OWN_SCALES = (Custom, Resize)
"""Operations that are computed with scales of the generator's own, besides the network's."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Constants that are not the network's, and the operation of the graph whose they are."""

    disagreement: Disagreement
    operation: Operation


@dataclass(slots=True)
class Judged:
    """What is known of a region's constants.

    held   sets of constants (weights, biases, scales, a table, of an operation) that are the
           network's, or what their kind says
    own    those of which nothing says what they have to be, so that executing alone judges them
    wrong  the first that are not the network's
    """

    held: int = 0
    own: int = 0
    wrong: Wrong | None = None

    def take(self, verdict: Wrong | bool) -> None:
        """Take the verdict on one set: whether it is the network's, or that it is wrong."""
        if isinstance(verdict, Wrong):
            self.wrong = self.wrong or verdict
        elif verdict:
            self.held += 1
        else:
            self.own += 1


def judged(witness: Witness, operations: Sequence[Operation], exponentials: Exponentials) -> Judged:
    """Judge all constants of a region.

    operations    of its graph, whose places the witness's origins are
    exponentials  tables that SOFTMAX may look up
    """
    constants = Judged()
    every = list(_made(witness, operations))
    region = multipliers_of(operations)
    layers: dict[Operation, _Convolutions] = {}
    for place, said, operation in every:
        if isinstance(said, SaidConvolution) and operation is not None:
            layer = layers.setdefault(operation, _Convolutions(operation))
            layer.places.append(place)
            layer.said.append(said)
        elif isinstance(said, SaidConvolution):
            constants.own += 1
        for verdict in _of_scales(place, said, operation, region):
            constants.take(verdict)
        if said.activation.table is not None:
            constants.take(_of_table(place, said, operation, exponentials))
    for layer in layers.values():
        for verdict in layer.judged():
            constants.take(verdict)
    return constants


Made = tuple[int, SaidOperation, Operation | None]
"""A step's place, what it does, and the operation of the graph that it was made for."""


def _made(witness: Witness, operations: Sequence[Operation]) -> Iterator[Made]:
    for place, said in enumerate(witness.steps):
        if isinstance(said, SaidTransfer):
            continue
        at = said.origin.operator
        known = at is not None and at < len(operations)
        yield place, said, operations[at] if at is not None and known else None


# Scales and tables


def _of_scales(
    place: int, said: SaidOperation, operation: Operation | None, region: frozenset[int]
) -> Iterator[Wrong | bool]:
    for name, scale in scales_of(said):
        if operation is None:
            yield rational(scale.multiplier, scale.shift)[0] == 1
            continue
        if kind_of(scale, said, operation, region) is not Kind.UNKNOWN:
            yield True
        elif isinstance(operation, OF_OWN_SCALES):
            yield False
        else:
            yield _wrong(place, operation, name, (), "none of its scales",
                         f"{scale.multiplier} / 2**{scale.shift}")  # fmt: skip


def _of_table(
    place: int, said: SaidOperation, operation: Operation | None, exponentials: Exponentials
) -> Wrong | bool:
    table = said.activation.table
    if operation is None or table is None:
        return False
    closest: tuple[int, np.ndarray] | None = None
    for expected in expected_tables(said, operation, exponentials):
        if len(expected) != len(table):
            continue
        differing = int(np.count_nonzero(expected != table))
        if not differing:
            return True
        if closest is None or differing < closest[0]:
            closest = differing, expected
    if closest is None or not _says(closest[0], len(table), operation):
        return False
    at = int(np.flatnonzero(closest[1] != table)[0])
    return _wrong(place, operation, "table", (at,), int(closest[1][at]), int(table[at]))


def _says(differing: int, size: int, operation: Operation) -> bool:
    """Whether a table must be one that differs from it so much."""
    return isinstance(operation, Table) or differing <= SAYS_SOMETHING * size


def _wrong(
    place: int,
    operation: Operation,
    name: str,
    index: tuple[int, ...],
    wanted: object,
    came: object,
) -> Wrong:
    origin = operation.origin or Origin()
    what = f"step {place} for {operation.kind}"
    return Wrong(Disagreement(what, origin, name, index, wanted, NETWORK, came, WITNESS), operation)


# Convolutions


@dataclass(slots=True)
class _Convolutions:
    """The convolutions that were made for an operation of the graph."""

    operation: Operation
    places: list[int] = field(default_factory=list[int])
    said: list[SaidConvolution] = field(default_factory=list[SaidConvolution])

    def judged(self) -> Iterator[Wrong | bool]:
        """Yield verdicts on weights, biases and scales of each."""
        layer = layer_of(self.operation)
        known = [each for each in zip(self.places, self.said, strict=True) if not _moves(each[1])]
        yield from (True for _ in range(3 * (len(self.said) - len(known))))
        if layer is None or any(said.weights is None for _, said in known):
            yield from (False for _ in range(3 * len(known)))
            return
        if not known:
            return
        yield from self._of_layer(layer, *zip(*known, strict=True))

    def _of_layer(
        self, layer: Layer, places: Sequence[int], said: Sequence[SaidConvolution]
    ) -> Iterator[Wrong | bool]:
        kernels = [each.weights for each in said if each.weights is not None]
        words = [sums_of(weights, (1, 2, 3)) for weights in kernels]
        matches = matched(layer, words)
        unknown = matches.first_unknown
        if unknown is None:
            rare = uneven(layer, words)
            if rare is not None:
                yield self._differs(places[0], "weights", (rare,), "as often as others", "less")
            yield from (True for _ in said)
        elif is_multiple(layer, words, kernels):
            yield from (True for _ in said)
        elif layer.knows_parts and matches.share > SAYS_SOMETHING:
            at, channel = unknown
            yield self._differs(places[at], "weights", (channel,), "those of one of its channels",
                                "others")  # fmt: skip
        else:
            yield from (False for _ in said)
        yield from self._of_channels(layer, places, said, matches)

    def _of_channels(
        self,
        layer: Layer,
        places: Sequence[int],
        said: Sequence[SaidConvolution],
        matches: Matched,
    ) -> Iterator[Wrong | bool]:
        scales = _scales_after(self.operation, len(layer.biases))
        for place, each, channels in zip(places, said, matches.channels, strict=True):
            if () in channels:
                yield False
                yield False
                continue
            yield self._of_biases(layer, place, each, channels)
            yield self._of_multipliers(scales, place, each, channels)

    def _of_biases(
        self,
        layer: Layer,
        place: int,
        said: SaidConvolution,
        channels: Sequence[tuple[int, ...] | None],
    ) -> Wrong | bool:
        """Compare biases, with what of a zero point is in them that the input does not have.

        Channels without weights and bias give zero: a map may have been padded with them.
        """
        assert said.weights is not None, "they are constants"
        sums = said.weights.astype(np.int64).sum((1, 2, 3))
        offset = UNSIGNED_OFFSET if said.ifm.dtype == np.uint8 else 0
        moved = sums * (said.ifm.zero_point - offset - layer.zero_point)
        for index, own in enumerate(channels):
            which = range(len(layer.biases)) if own is None else own
            came = int(said.channels.biases[index])
            if own is None and came == 0:
                continue
            wanted = {int(layer.biases[channel] + moved[index]) for channel in which}
            if came not in wanted:
                said_ = min(wanted, key=lambda bias: abs(bias - came))
                return self._differs(place, "bias", (index,), said_, came)
        return True

    def _of_multipliers(
        self,
        scales: Sequence[set[tuple[int, int]]],
        place: int,
        said: SaidConvolution,
        channels: Sequence[tuple[int, ...] | None],
    ) -> Wrong | bool:
        pairs = zip(said.channels.multipliers.tolist(), said.channels.shifts.tolist(), strict=True)
        for index, ((multiplier, shift), own) in enumerate(zip(pairs, channels, strict=True)):
            which = range(len(scales)) if own is None else own
            if own is None and not said.channels.biases[index]:
                continue
            if not any(rational(multiplier, shift) in scales[channel] for channel in which):
                wanted = scales[which[0]]
                return self._differs(
                    place, "scale", (index,), sorted(wanted), f"{multiplier} / 2**{shift}"
                )
        return True

    def _differs(
        self, place: int, name: str, index: tuple[int, ...], wanted: object, came: object
    ) -> Wrong:
        return _wrong(place, self.operation, name, index, wanted, came)


def _moves(said: SaidConvolution) -> bool:
    """Whether a convolution gives numbers of its input as they are, at other places."""
    if said.weights is None or said.channels.biases.any():
        return False
    flat = said.weights.reshape(len(said.weights), -1)
    alone = (np.count_nonzero(flat, axis=1) <= 1).all() and np.isin(flat, (0, 1)).all()
    return bool(alone) and bool((said.channels.multipliers == 1 << said.channels.shifts).all())


def _scales_after(operation: Operation, channels: int) -> list[set[tuple[int, int]]]:
    """Return by what sums of each channel may be multiplied: RESCALEs after them, or nothing."""
    allowed = [{(1, 0)} for _ in range(channels)]
    for result in operation.results:
        for user in after(result, lambda _: False):
            if not isinstance(user, Rescale):
                continue
            scales = rationals(user)
            if len(scales) == 1:
                scales *= channels
            if len(scales) == channels:
                for known, scale in zip(allowed, scales, strict=True):
                    known.add(scale)
    return allowed
