"""ARGMAX: the greatest, where it is, and the first such place.

What is as great as the greatest of its row counts for as many as there are places from it to the
end of the row, anything else for nothing; the greatest of these is the first place. A table says
of bytes what is as great; 16 bits are compared in 32.

Ref: TOSA 1.0, 2.3.1 ARGMAX.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.graph import DType
from mizzen.ops.tensor import Argmax
from mizzen.targets.ethos_u.generator.lower.carrying import ONE, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE, plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.lower.windows import LARGEST_POOL
from mizzen.targets.ethos_u.generator.lower.words import Words, greatest_of_rows
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Elementwise,
    Map,
    Scalar,
    Table,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, RoundMode

INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)
MOST_PLACES = 32767
"""Places that are counted in 16 bits."""

MOST_OF_BYTES = 127
"""Places that are counted in 8 bits."""

HIGH = 127


@rule(Argmax)
def place_of_greatest(site: Site) -> Node:
    """ARGMAX along any axis."""
    operation = site.operation
    assert isinstance(operation, Argmax)
    source, axis = operation.input, operation.axis
    need(source.dtype in (DType.INT8, DType.INT16), "it compares no narrow integers")
    need(not site.steps, "its places are scaled")
    count = source.shape[axis]
    need(count <= min(MOST_PLACES, LARGEST_POOL), "it has too many places")

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(source)
        kept = [place for place in range(len(source.shape)) if place != axis]
        flat = (source.type.elements // count, count)
        seen = view.permuted((*kept, axis))
        found = seen.reshaped(flat)
        if found is None or (found.strides[-1] != 1 and count > 1):
            found = emitter.copied(seen, site.origin).reshaped(flat)
        made = target.reshaped((flat[0], 1))
        place = made or emitter.tensor("places", (flat[0], 1), emitter.dtype(target))
        assert found is not None
        Places(emitter, site.origin, found).write(place)
        if made is None:
            shaped = place.reshaped(target.shape)
            assert shaped is not None
            emitter.copy(shaped, target, site.origin)

    return site.node((source,), write)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Adds the operations for rows [N, C]."""

    emitter: Emitter
    origin: Origin
    view: View

    def write(self, target: View) -> None:
        """Write the place of the greatest of each row to [N, 1]."""
        count = self.view.shape[1]
        left = np.arange(count, 0, -1)
        greatest = greatest_of_rows(self.emitter, self.origin, self.view)
        if self.emitter.dtype(self.view) == INT8 and count <= MOST_OF_BYTES:
            counted = self._equal(greatest, left.astype(np.int8))
        else:
            counted = self._counted(greatest, left)
        first = greatest_of_rows(self.emitter, self.origin, counted)
        number = Scalar(count, self.emitter.dtype(first))
        wide = Activation(*NARROW_RANGE)
        for ifm, ifm2, ofm in each_with(self.emitter, first, number, target):
            self._add(ElementwiseMode.SUB, ifm, ifm2, ofm, wide, turned=True)

    def _equal(self, greatest: View, left: np.ndarray[tuple[int], np.dtype[np.int8]]) -> View:
        """Return what is as great as the greatest, times what is left, in bytes."""
        entries = np.zeros(256, np.int8)
        entries[HIGH + 128] = 1
        equal = self.emitter.scratch(self.view, "equal")
        table = Activation(-128, HIGH, Table(entries.tobytes()))
        for ifm, ifm2, ofm in each_with(self.emitter, self.view, greatest, equal):
            zeroed = Map(ofm.view, ofm.dtype, HIGH)
            self._add(ElementwiseMode.SUB, ifm, ifm2, zeroed, table)
        counted = self.emitter.scratch(self.view, "counted")
        constant = self.emitter.constant(left.reshape(1, -1), "left")
        for ifm, ifm2, ofm in each_with(self.emitter, equal, constant, counted):
            self._add(ElementwiseMode.MUL, ifm, ifm2, ofm, plain(DType.INT8).activation)
        return counted

    def _counted(
        self, greatest: View, left: np.ndarray[tuple[int], np.dtype[np.signedinteger]]
    ) -> View:
        """Return the same in 16 bits, compared in 32."""
        words, wide = Words(self.emitter, self.origin), Activation(*NARROW_RANGE)
        apart = self.emitter.scratch(self.view, "apart", np.dtype(np.int32))
        for ifm, ifm2, ofm in each_with(self.emitter, self.view, greatest, apart):
            self._add(ElementwiseMode.SUB, ifm, ifm2, ofm, wide)
        bounded = words(ElementwiseMode.MAX, apart, -1)
        equal = words(ElementwiseMode.ADD, bounded, 1)
        constant = self.emitter.constant(left.astype(np.int32).reshape(1, -1), "left")
        counted = self.emitter.scratch(self.view, "counted", INT16)
        for ifm, ifm2, ofm in each_with(self.emitter, equal, constant, counted):
            self._add(ElementwiseMode.MUL, ifm, ifm2, ofm, plain(DType.INT16).activation)
        return counted

    def _add(
        self,
        mode: ElementwiseMode,
        ifm: Map,
        ifm2: Map | Scalar,
        ofm: Map,
        activation: Activation,
        *,
        turned: bool = False,
    ) -> None:
        summed = ONE if mode is ElementwiseMode.SUB else None
        self.emitter.operations.append(
            Elementwise(
                self.origin,
                mode,
                ifm,
                ifm2,
                ofm,
                activation,
                reversed=turned,
                scale=ONE,
                scale_a=summed,
                scale_b=summed,
                rounding=RoundMode.NATURAL,
            )
        )
