"""Whether every layer is computed whole, once in each replica, and every output given."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from mizzen.mesh.network.boxes import Box, box_of
from mizzen.mesh.network.network import LayerKind
from mizzen.mesh.program.checker.findings import Finding, Rule, shown
from mizzen.mesh.program.checker.view import View, wrongly_written
from mizzen.mesh.program.program import Copy, ElementProgram, Give, Kernel, Receive

Tiles = dict[tuple[int, int], list[Kernel]]
"""By replica and layer."""


def layer_findings(view: View) -> Iterator[Finding]:
    """Return layers of which something is not computed, or more than once."""
    tiles: Tiles = {}
    for element, _, compute in view.computes():
        tiles.setdefault((element.replica, compute.kernel.layer), []).append(compute.kernel)
    checked = cache(_layer)
    for replica in range(view.program.replicas):
        for index in range(len(view.network.layers)):
            kernels = sorted(tiles.get((replica, index), []), key=repr_key)
            for must, came in checked(view, index, tuple(kernels)):
                place = f"replica {replica}, {view.network.layers[index].name}"
                yield Finding(Rule.LAYERS, place, must, came)
    yield from _added(view)


def repr_key(kernel: Kernel) -> tuple[Box, tuple[int, int], bool]:
    """Return the key that kernels of a layer are ordered by."""
    return kernel.box, kernel.channels or (-1, -1), kernel.gives_sums


def _layer(view: View, index: int, kernels: tuple[Kernel, ...]) -> tuple[tuple[str, str], ...]:
    layer = view.network.layers[index]
    whole = box_of(view.network.tensors[layer.output].shape)
    given = tuple(kernel.box for kernel in kernels if not kernel.gives_sums)
    findings: list[tuple[str, str]] = []
    missing, twice = wrongly_written(whole, given)
    if missing or twice:
        must = f"each element of {shown(whole)} must be computed once"
        findings.append((must, f"{missing} are not, {twice} are more than once"))
    if layer.kind is LayerKind.GENERAL and any(kernel.box != whole for kernel in kernels):
        findings.append(("it must not be split", "and is"))
    groups: dict[Box, list[Kernel]] = {}
    for kernel in kernels:
        groups.setdefault(kernel.box, []).append(kernel)
    for box, group in groups.items():
        findings += _group(layer.input_channels, box, group)
    return tuple(findings)


def _group(input_channels: int, box: Box, group: list[Kernel]) -> Iterator[tuple[str, str]]:
    """Return the faults of the tiles of one box: their sums are cut."""
    givers = [kernel for kernel in group if kernel.gives_sums]
    spans = [kernel.channels or (0, input_channels) for kernel in group]
    ends = [stop for _, stop in spans]
    is_whole = [start for start, _ in spans] == [0, *ends[:-1]] and ends[-1] == input_channels
    if (givers or len(group) > 1 or group[0].channels is not None) and not is_whole:
        must = f"the sums of {shown(box)} must be over 0:{input_channels}, each channel once"
        yield must, "over " + ", ".join(f"{start}:{stop}" for start, stop in spans)
    adders = [kernel for kernel in group if not kernel.gives_sums]
    if len(adders) == 1:
        (adder,) = adders
        if adder.adds_sums != len(givers) or (adder.channels or (0, 0))[0] != 0:
            must = f"the tile of the first channels of {shown(box)} must add {len(givers)} sums"
            yield must, f"that of {adder.channels} adds {adder.adds_sums}"
    elif givers:
        yield f"one tile of {shown(box)} must add the sums", f"{len(adders)} do"


def _added(view: View) -> Iterator[Finding]:
    """Return partial sums that are not added where they belong, or more than once."""
    taken: dict[tuple[int, Kernel], int] = {}
    for element, place, adder, giver in _sums(view):
        if giver is None or not giver.gives_sums:
            continue
        if (giver.layer, giver.box) != (adder.layer, adder.box):
            must = f"the sums must be of {shown(adder.box)} of layer {adder.layer}"
            came = f"not of {shown(giver.box)} of layer {giver.layer}"
            yield Finding(Rule.LAYERS, view.place(element, place), must, came)
        key = element.replica, giver
        taken[key] = taken.get(key, 0) + 1
    for element, place, compute in view.computes():
        if compute.kernel.gives_sums and taken.get((element.replica, compute.kernel), 0) != 1:
            count = taken.get((element.replica, compute.kernel), 0)
            must = "these partial sums must be added once"
            yield Finding(Rule.LAYERS, view.place(element, place), must, f"and are {count} times")


def _sums(view: View) -> Iterator[tuple[ElementProgram, int, Kernel, Kernel | None]]:
    """Return each writing of partial sums, with the tile that adds them and the one that gave."""
    adders = {
        (each.element, region): compute.kernel
        for each, _, compute in view.computes()
        for region in compute.sums
    }
    for element in view.program.elements:
        for place, instruction in enumerate(element.instructions):
            match instruction:
                case Receive(message, region) if (element.element, region) in adders:
                    sends = view.sends.get(message, [])
                    source = (sends[0].element.element, sends[0].send.region) if sends else None
                case Copy(given, region) if (element.element, region) in adders:
                    source = (element.element, given)
                case _:
                    continue
            kernels = view.computed.get(source, []) if source is not None else []
            yield element, place, adders[element.element, region], kernels[0] if kernels else None


def output_findings(view: View) -> Iterator[Finding]:
    """Return outputs of the network that are not given whole, once in each replica."""
    given: dict[tuple[int, int], list[Box]] = {}
    for element in view.program.elements:
        for instruction in element.instructions:
            if isinstance(instruction, Give):
                key = element.replica, instruction.tensor
                given.setdefault(key, []).append(instruction.box)
    for replica in range(view.program.replicas):
        for tensor in dict.fromkeys(view.network.outputs):
            shape = view.network.tensors[tensor].shape
            boxes = [box for box in given.get((replica, tensor), []) if len(box) == len(shape)]
            missing, twice = wrongly_written(box_of(shape), tuple(boxes))
            if missing or twice:
                place = f"replica {replica}, output {view.network.tensors[tensor].name}"
                must = "each element must be given once"
                came = f"{missing} are not, {twice} are more than once"
                yield Finding(Rule.OUTPUTS, place, must, came)
