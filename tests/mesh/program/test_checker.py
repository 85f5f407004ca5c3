"""What the checker finds in programs that were right before something in them was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.machine import without
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.program import Compute, Instruction, MeshProgram, Receive, Rule, Send, check

Change = Callable[[MeshProgram], MeshProgram]
Made = dict[str, Callable[[], Mapping]]


def test_what_is_emitted_of_a_sound_mapping_holds(hand_mapping: Mapping) -> None:
    assert check(emit(hand_mapping)) == ()


def region(element: int, index: int, **changes: Any) -> Change:
    def change(program: MeshProgram) -> MeshProgram:
        row = program.elements[element]
        regions = list(row.regions)
        regions[index] = replace(regions[index], **changes)
        return put(program, element, regions=tuple(regions))

    return change


def put(program: MeshProgram, place: int, **changes: Any) -> MeshProgram:
    rows = list(program.elements)
    rows[place] = replace(rows[place], **changes)
    return replace(program, elements=tuple(rows))


def instructions(element: int, edit: Callable[[list[Instruction]], object]) -> Change:
    def change(program: MeshProgram) -> MeshProgram:
        rows = list(program.elements[element].instructions)
        edit(rows)
        return put(program, element, instructions=tuple(rows))

    return change


def instruction(element: int, index: int, **changes: Any) -> Change:
    def edit(rows: list[Instruction]) -> None:
        rows[index] = replace(rows[index], **changes)

    return instructions(element, edit)


def kernel(element: int, index: int, **changes: Any) -> Change:
    def edit(rows: list[Instruction]) -> None:
        compute = rows[index]
        assert isinstance(compute, Compute)
        rows[index] = replace(compute, kernel=replace(compute.kernel, **changes))

    return instructions(element, edit)


def route(message: int, **changes: Any) -> Change:
    def change(program: MeshProgram) -> MeshProgram:
        rows = list(program.routes)
        rows[message] = replace(rows[message], **changes)
        return replace(program, routes=tuple(rows))

    return change


def dead_element(program: MeshProgram) -> MeshProgram:
    return replace(program, machine=without(program.machine, [1]))


def dead_link(program: MeshProgram) -> MeshProgram:
    return replace(program, machine=without(program.machine, [], [program.routes[0].links[0]]))


def swapped(rows: list[Instruction]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


OF_CHANNELS: dict[str, tuple[Change, str]] = {
    # Structure: nothing else is said.
    "a region that is not": (
        instruction(0, 0, region=9),
        "elements[0].instructions[0]: regions must be below 3, not 9",
    ),
    "a tensor that is not": (
        region(0, 1, tensor=5),
        "elements[0].regions[1].tensor: must be below 3, not 5",
    ),
    "a box outside its tensor": (
        region(0, 1, box=((0, 1), (0, 7), (0, 5), (0, 3))),
        "elements[0].regions[1].box: must lie within [1, 6, 5, 3], not [0:1, 0:7, 0:5, 0:3]",
    ),
    "no box": (region(0, 1, box=None), "elements[0].regions[1].box: input must have a box, not no"),
    "slots": (region(0, 1, slots=0), "elements[0].regions[1].slots: must be from 1 to 4294967295"),
    "an element that is not": (
        lambda program: put(program, 0, element=16),
        "elements[0]: the element must be below 16, not 16",
    ),
    "two programs": (
        lambda program: put(program, 1, element=0),
        "elements[1]: an element must have one program, 0 has two",
    ),
    "replicas": (
        lambda program: put(program, 1, replica=1),
        "elements[1]: the replica must be below 1, not 1",
    ),
    "no replica": (
        lambda program: replace(program, replicas=0),
        "program: replicas must be at least 1, not 0",
    ),
    "a layer that is not": (
        kernel(0, 1, layer=7),
        "elements[0].instructions[1]: the layer must be below 2, not 7",
    ),
    "channels": (
        kernel(0, 1, channels=(0, 9)),
        "elements[0].instructions[1].kernel.channels: must lie within 0:3 of a convolution, not",
    ),
    "operands": (
        instruction(0, 1, operands=()),
        "elements[0].instructions[1]: layer0 must have 1 operands, not 0",
    ),
    "a message that is not": (
        instruction(0, 2, message=77),
        "elements[0].instructions[2]: the message must be below 3, not 77",
    ),
    "what is no input": (
        instruction(0, 0, tensor=1),
        "elements[0].instructions[0]: the tensor must be one of 0, not 1",
    ),
    "a link that is not": (route(0, links=(999,)), "routes[0].links: links must be below 48"),
    "a target that is not": (route(0, targets=(-1,)), "routes[0]: elements must be below 16"),
    # The machine.
    "a dead element": (
        dead_element,
        "chip 0, router 1,0, element 0: an element with a program must be usable, it is dead",
    ),
    "capacity": (
        region(0, 2, slots=2000),
        "chip 0, router 0,0, element 0: programs must need at most 98304 bytes of data memory, "
        "this one needs",
    ),
    "an overlap": (
        region(0, 2, address=96),
        "chip 0, router 0,0, element 0: region 2 must begin after region 1, at ",
    ),
    "alignment": (
        region(0, 2, address=4093),
        "region 2 must begin at a multiple of 16 bytes, not at 4093",
    ),
    "a slot that is too small": (
        region(0, 2, slot_bytes=10),
        "a slot of region 2 must have 60 bytes, not 10",
    ),
    "constants": (
        region(0, 0, slot_bytes=10),
        "instruction 1: layer0 must have 72 bytes of constants, not 10",
    ),
    "cycles": (instruction(0, 1, cycles=3), "instruction 1: layer0 must take 216 cycles, not 3"),
    # What tiles need.
    "an operand that nobody writes": (
        instructions(0, lambda rows: rows.pop(0)),
        "each element of [0:1, 0:6, 0:5, 0:3] of tensor 0 must be written once, 90 are not, 0 are",
    ),
    "an operand written twice": (
        instructions(0, lambda rows: rows.insert(0, rows[0])),
        "each element of [0:1, 0:6, 0:5, 0:3] of tensor 0 must be written once, 0 are not, 90 are",
    ),
    "no operand": (
        instruction(0, 1, operands=(None,)),
        "the operand of tensor 0 must be [0:1, 0:6, 0:5, 0:3], not no region",
    ),
    "another region": (
        instruction(0, 1, operands=(2,)),
        "the operand must hold [0:1, 0:6, 0:5, 0:3] of tensor 0, region 2 holds",
    ),
    "fetched too late": (
        instructions(0, swapped),
        "region 1 must be written before it is used, not afterwards",
    ),
    "sent before it is computed": (
        instructions(0, lambda rows: rows.insert(0, rows.pop())),
        "region 2 must be computed before it is read, and is not",
    ),
    "part of something else": (
        instruction(0, 2, region=1),
        "[0:1, 0:6, 0:5, 0:2] must be part of an output, region 1 is input",
    ),
    "another output": (
        instruction(0, 1, output=0),
        "the output must hold [0:1, 0:6, 0:5, 0:2] of tensor 1, region 0 holds no box",
    ),
    "written in the wrong place": (
        instruction(2, 0, region=0),
        "partial sums must be written into a region sums of it, not into constants",
    ),
    # Layers and outputs.
    "a tile that is gone": (
        instructions(0, lambda rows: rows.pop(1)),
        "replica 0, layer0: each element of [0:1, 0:6, 0:5, 0:8] must be computed once, 60 are not",
    ),
    "a replica that is not there": (
        lambda program: replace(program, replicas=2),
        "replica 1, layer0: each element of [0:1, 0:6, 0:5, 0:8] must be computed once, 240 are",
    ),
    "an output that is not given": (
        instructions(4, lambda rows: rows.pop()),
        "replica 0, output t2: each element must be given once, 27 are not, 0 are more than once",
    ),
    "an output given twice": (
        instructions(4, lambda rows: rows.append(rows[-1])),
        "replica 0, output t2: each element must be given once, 0 are not, 27 are more than once",
    ),
    # Messages.
    "a message not sent": (
        instructions(0, lambda rows: rows.pop()),
        "message 0: it must be sent once, by chip 0, router 0,0, element 0, and is not sent",
    ),
    "a message sent by another": (
        route(0, source=1),
        "message 0: it must be sent once, by chip 0, router 1,0, element 0, not by chip 0, router",
    ),
    "a message not received": (
        instructions(2, lambda rows: rows.pop(0)),
        "message 0: every target must receive it, ",
    ),
    "a message for others": (
        route(0, targets=(5,)),
        "message 0: only targets must receive it, chip 0, router 2,0, element 0 does",
    ),
    "bytes": (route(0, size_bytes=3), "message 0: it must have the 60 bytes of [0:1, 0:6, 0:5"),
    "another box": (
        instruction(2, 0, box=((0, 1), (0, 6), (0, 5), (0, 1))),
        "message 0 must be [0:1, 0:6, 0:5, 0:2] of tensor 1, not [0:1, 0:6, 0:5, 0:1] of tensor 1",
    ),
    "targets twice": (route(0, targets=(2, 2, 5)), "message 0: its targets must be elements, each"),
    "a dead link": (dead_link, "message 0: its links must be alive, link "),
    "no links": (route(0, links=()), "message 0: its links must lead to every target, and do not"),
    "no tree": (route(0, links=(9, 9)), "message 0: its links must be a tree from its source's"),
}


@pytest.mark.parametrize("name", OF_CHANNELS)
def test_a_broken_program_is_found(name: str, by_hand: Made) -> None:
    change, text = OF_CHANNELS[name]
    found = [str(row) for row in check(change(emit(by_hand["split_channels"]())))]
    assert any(text in row for row in found), found


OF_SUMS: dict[str, tuple[Change, str]] = {
    "sums over too little": (
        kernel(2, -2, channels=(0, 3)),
        "the sums of [0:1, 0:5, 0:5, 0:4] must be over 0:12, each channel once, over 0:3, 4:8, 8:",
    ),
    "sums that are not added": (
        kernel(2, -2, adds_sums=1),
        "1 regions of partial sums must be named, not",
    ),
    "sums of others": (
        kernel(3, -2, box=((0, 1), (0, 5), (0, 5), (4, 8))),
        "the sums must be of [0:1, 0:5, 0:5, 0:4] of layer 1, not of [0:1, 0:5, 0:5, 4:8] of lay",
    ),
    "sums that nobody receives": (
        instructions(2, lambda rows: rows.pop(-3)),
        "must be written once, whole, and is written 0 times",
    ),
    "no sums given": (
        kernel(3, -2, gives_sums=False),
        "each element of [0:1, 0:5, 0:5, 0:8] must be computed once, 0 are not, 100 are more",
    ),
}


@pytest.mark.parametrize("name", OF_SUMS)
def test_broken_sums_are_found(name: str, by_hand: Made) -> None:
    change, text = OF_SUMS[name]
    found = [str(row) for row in check(change(emit(by_hand["split_sums"]())))]
    assert any(text in row for row in found), found


def test_elements_that_wait_for_each_other_are_named(by_hand: Made) -> None:
    """Two elements that give each other sums, each adding its own first."""
    program = emit(by_hand["several_tiles_an_element"]())
    for element in (0, 1):
        rows = list(program.elements[element].instructions)
        place = next(
            place
            for place, row in enumerate(rows)
            if isinstance(row, Compute) and row.kernel.gives_sums
        )
        sending = next(index for index in range(place, len(rows)) if isinstance(rows[index], Send))
        moved = rows.pop(sending)
        behind = max(index for index, row in enumerate(rows) if isinstance(row, Receive))
        rows.insert(behind + 1, moved)
        program = put(program, element, instructions=tuple(rows))
    (found,) = [row for row in check(program) if row.rule is Rule.WAITING]
    assert str(found).startswith(
        "program: every element must come to its last instruction, 2 wait for ever: "
        "chip 0, router 0,0, element 0 for message "
    )
    assert "; chip 0, router 1,0, element 0 for message " in str(found)


def test_a_message_of_another_replicas_image_is_found(by_hand: Made) -> None:
    program = emit(by_hand["replicas"]())
    found = [str(row) for row in check(put(program, 0, replica=1))]
    assert any("must be of an image of replica 0, not of replica 1" in row for row in found)


def test_sums_beyond_the_accumulators_are_found_by_the_weights(by_hand: Made) -> None:
    program = emit(by_hand["split_channels"]())
    (kind,) = program.machine.kinds
    assert kind.array is not None
    narrow = replace(kind, array=replace(kind.array, accumulator_bits=16))
    machine = replace(program.machine, kinds=(narrow,))
    first, second = check(replace(program, machine=machine))
    assert first.rule is Rule.ACCUMULATORS
    assert str(first).startswith(
        "layer0: sums must be at most 32767 in accumulators of 16 bits, they can be "
    )
    assert str(second).startswith("layer1: sums must be at most 32767")
