"""Whether every tile has all that it needs in its regions, once, before it is computed."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.mesh.network.boxes import Box, intersection
from mizzen.mesh.program.checker.findings import Finding, Rule, shown
from mizzen.mesh.program.checker.view import View, wrongly_written
from mizzen.mesh.program.program import (
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    Receive,
    Region,
    RegionKind,
    Send,
)


def operand_findings(view: View) -> Iterator[Finding]:
    """Return tiles whose operands are not there, and boxes that are read and not there."""
    for element in view.program.elements:
        yield from _OperandCheck(view, element).findings()


def _holds(region: Region, box: Box) -> bool:
    return (
        region.box is not None
        and len(region.box) == len(box)
        and intersection(region.box, box) == box
    )


class _OperandCheck:
    """One image in one element, from the first instruction to the last."""

    def __init__(self, view: View, element: ElementProgram) -> None:
        self.view = view
        self.element = element
        self.written: dict[int, list[Box]] = {}
        self.used: set[int] = set()
        self.computed: set[int] = set()

    def findings(self) -> Iterator[Finding]:
        """Return the boxes that are read before they are written, or written twice, in order."""
        for place, instruction in enumerate(self.element.instructions):
            match instruction:
                case Fetch(tensor, region):
                    box = self.element.regions[region].box
                    yield from self._write(place, region, box or (), tensor)
                case Receive(_, region, box):
                    yield from self._write(place, region, box, self.element.regions[region].tensor)
                case Copy(source, target, box):
                    yield from self._read(place, source, box)
                    yield from self._write(place, target, box, self.element.regions[source].tensor)
                case Compute():
                    yield from self._compute(place, instruction)
                case Send(_, region, box):
                    yield from self._read(place, region, box)
                case Give(tensor, region, box):
                    yield from self._read(place, region, box)
                    if self.element.regions[region].tensor != tensor:
                        must = f"what is given must be tensor {tensor}"
                        came = f"region {region} has {self._called(region)}"
                        yield self._finding(place, must, came)
        for region in sorted(self.written.keys() - self.used):
            must = f"region {region} must be used after the place where it is written"
            yield self._finding(None, must, "and is not")

    def _finding(self, place: int | None, must: str, came: str) -> Finding:
        return Finding(Rule.OPERANDS, self.view.place(self.element, place), must, came)

    def _called(self, region: int) -> str:
        held = self.element.regions[region]
        if held.tensor is None:
            return held.kind.value
        return f"{held.kind.value} of tensor {held.tensor}"

    def _write(self, place: int, region: int, box: Box, tensor: int | None) -> Iterator[Finding]:
        held = self.element.regions[region]
        wanted = RegionKind.SUMS if tensor is None else RegionKind.INPUT
        if held.kind is not wanted or held.tensor != tensor:
            must = f"tensor {tensor}" if tensor is not None else "partial sums"
            must = f"{must} must be written into a region {wanted.value} of it"
            yield self._finding(place, must, f"not into {self._called(region)}")
        elif not _holds(held, box):
            must = f"{shown(box)} must lie in region {region}"
            yield self._finding(place, must, f"which holds {shown(held.box)}")
        elif region in self.used:
            must = f"region {region} must be written before it is used"
            yield self._finding(place, must, "not afterwards")
        self.written.setdefault(region, []).append(box)

    def _read(self, place: int, region: int, box: Box) -> Iterator[Finding]:
        held = self.element.regions[region]
        if held.kind is not RegionKind.OUTPUT or not _holds(held, box):
            must = f"{shown(box)} must be part of an output"
            yield self._finding(
                place, must, f"region {region} is {held.kind.value} {shown(held.box)}"
            )
        elif region not in self.computed:
            must = f"region {region} must be computed before it is read"
            yield self._finding(place, must, "and is not")

    def _compute(self, place: int, compute: Compute) -> Iterator[Finding]:
        kernel = compute.kernel
        layer = self.view.layer(kernel)
        needed = self.view.needed(kernel.layer, kernel.box, kernel.channels)
        operands = zip(layer.inputs, needed, compute.operands, strict=True)
        for tensor, box, region in operands:
            yield from self._operand(place, tensor, box, region)
        yield from self._sums(place, compute)
        yield from self._output(place, compute)
        self.used.update(region for region in compute.operands if region is not None)
        self.used.update(compute.sums)
        self.computed.add(compute.output)

    def _operand(
        self, place: int, tensor: int, box: Box | None, region: int | None
    ) -> Iterator[Finding]:
        if box is None or region is None:
            if (box is None) != (region is None):
                name = "no region" if region is None else f"region {region}"
                must = f"the operand of tensor {tensor} must be {shown(box)}"
                yield self._finding(place, must, f"not {name}")
            return
        held = self.element.regions[region]
        if held.kind is not RegionKind.INPUT or held.tensor != tensor or not _holds(held, box):
            must = f"the operand must hold {shown(box)} of tensor {tensor}"
            came = f"region {region} holds {shown(held.box)}, {self._called(region)}"
            yield self._finding(place, must, came)
            return
        missing, twice = wrongly_written(box, self._boxes(region, len(box)))
        if missing or twice:
            must = f"each element of {shown(box)} of tensor {tensor} must be written once"
            yield self._finding(place, must, f"{missing} are not, {twice} are more than once")

    def _boxes(self, region: int, rank: int) -> tuple[Box, ...]:
        return tuple(box for box in self.written.get(region, ()) if len(box) == rank)

    def _sums(self, place: int, compute: Compute) -> Iterator[Finding]:
        kernel = compute.kernel
        if len(set(compute.sums)) != kernel.adds_sums or len(compute.sums) != kernel.adds_sums:
            must = f"{kernel.adds_sums} regions of partial sums must be named"
            yield self._finding(place, must, f"not {list(compute.sums)}")
        for region in compute.sums:
            held = self.element.regions[region]
            if held.kind is not RegionKind.SUMS or held.box != kernel.box:
                must = f"partial sums must be of {shown(kernel.box)}"
                came = f"region {region} is {held.kind.value} of {shown(held.box)}"
                yield self._finding(place, must, came)
            elif self.written.get(region, []) != [kernel.box]:
                count = len(self.written.get(region, []))
                must = f"region {region} must be written once, whole"
                yield self._finding(place, must, f"and is written {count} times")

    def _output(self, place: int, compute: Compute) -> Iterator[Finding]:
        kernel, region = compute.kernel, self.element.regions[compute.output]
        tensor = None if kernel.gives_sums else self.view.layer(kernel).output
        wanted = (RegionKind.OUTPUT, tensor, kernel.box)
        if (region.kind, region.tensor, region.box) != wanted:
            must = f"the output must hold {shown(kernel.box)} of tensor {tensor}"
            came = f"region {compute.output} holds {shown(region.box)} of tensor {region.tensor}"
            yield self._finding(place, must, came)
        elif compute.output in self.computed:
            must = f"region {compute.output} must be computed once"
            yield self._finding(place, must, "not again")
