"""Elements that cannot be written in C, or recorded: what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Value
from mizzen.mesh.emission import emit
from mizzen.mesh.export import export_element, record
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import LayerKind
from mizzen.mesh.program import ElementProgram, MeshProgram, Region, RegionKind, Send

from .building import images_of
from .chains import Chain, Chains, program_of

ByHand = dict[str, Callable[[], Mapping]]


def said(program: MeshProgram, element: int) -> str:
    with pytest.raises(MizzenError) as caught:
        export_element(program, element)
    return str(caught.value)


def test_operations_without_a_form_are_named() -> None:
    def real(make: Chains, x: Value) -> Value:
        return make("CAST", make("SIN", make("CAST", x, dtype=DType.FP32)), dtype=DType.INT8)

    chains: dict[str, Chain] = {"plain": lambda make, x: make("IDENTITY", x), "sine": real}
    assert said(program_of(chains, (1, 2, 2, 3)), 0) == (
        "error[E550]: every operation of chip 0, router 0,0, element 0 must have a form of C, and "
        "these have none: CAST of layer 'sine'; SIN of layer 'sine'\n"
        "  help leave these layers to an element that runs a kernel of its own, or cut the network "
        "before them; every other element can be exported"
    )


def test_too_little_scratch_memory() -> None:
    def squared(make: Chains, x: Value) -> Value:
        left = make("CLAMP", x, min_val=-9, max_val=9)
        zero = make.constant([0], DType.INT8)
        return make("MATMUL", left, make("TRANSPOSE", left, perms=(0, 2, 1)), zero, zero)

    program = program_of({"squared": squared}, (1, 4, 3), LayerKind.REDUCTION)
    (row,) = program.elements
    full = row.regions[-1].address
    assert row.regions[-1].kind is RegionKind.SCRATCH
    short = replace(row, regions=row.regions[:-1])
    kind = replace(program.machine.kind_of(0), data_bytes=full + 8)
    machine = replace(program.machine, kinds=(kind,))
    assert said(replace(program, machine=machine, elements=(short,)), 0) == (
        "error[E552]: layer 'squared' must have 12 bytes of scratch memory in C, and 8 are left in "
        "the element's data memory\n"
        "  help map the layer with fewer tiles beside it, or split it"
    )


def test_an_element_without_a_program(by_hand: ByHand) -> None:
    assert said(emit(by_hand["split_channels"]()), 9) == (
        "error[E551]: element 9 must have a program, and 5 others have one\n"
        "  help `mizzen mesh report` shows which elements are used"
    )


def test_a_network_of_shapes_only(by_hand: ByHand) -> None:
    program = emit(by_hand["split_channels"]())
    layers = tuple(replace(layer, chain=None) for layer in program.network.layers)
    shapes = replace(program, network=replace(program.network, layers=layers))
    assert said(shapes, 0) == (
        "error[E551]: hand must have weights to be written in C, and has shapes only\n"
        "  help map a .tflite file or a quantised PyTorch program instead"
    )


def test_an_element_that_was_not_recorded(by_hand: ByHand) -> None:
    program = emit(by_hand["split_channels"]())
    recording = record(program, images_of(program.network, 1), [0, 4])
    with pytest.raises(MizzenError) as caught:
        export_element(program, 1, recording)
    assert str(caught.value) == (
        "error[E553]: element 1 must have been recorded, and these were: 0, 4\n"
        "  help name the element in `record`"
    )


def test_more_data_than_the_board_has(by_hand: ByHand) -> None:
    program = emit(by_hand["split_channels"]())
    row = program.elements[0]
    far = Region(RegionKind.SCRATCH, 1 << 22, 16, 1)
    large = replace(program, elements=(replace(row, regions=(*row.regions, far)),))
    assert said(large, 0) == (
        "error[E554]: SRAM of corstone300 must hold 4194320 bytes of data memory, and has 2097152\n"
        "  help use element.c in a project of your own"
    )


def _silent(row: ElementProgram) -> ElementProgram:
    kept = (each for each in row.instructions if not isinstance(each, Send))
    return replace(row, instructions=tuple(kept))


def test_a_program_that_waits_for_itself_is_not_recorded(by_hand: ByHand) -> None:
    program = emit(by_hand["split_channels"]())
    silent = tuple(_silent(row) for row in program.elements)
    with pytest.raises(MizzenError) as caught:
        record(replace(program, elements=silent), images_of(program.network, 1))
    assert str(caught.value) == (
        "error[E535]: every element must finish its program to be recorded, and some wait for "
        "messages that no element sends\n"
        "  help `mizzen mesh check` says which elements wait for each other"
    )
