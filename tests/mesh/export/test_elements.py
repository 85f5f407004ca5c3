"""Elements in C, built and run: they send and give the bytes of the execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.export import export_element
from mizzen.mesh.machine import Machine, Overflow
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import LayerKind, Network, network_of_tflite
from mizzen.mesh.program import Compute, MeshProgram

from .building import BAD, GOOD, differing_here, recorded, run_emulated, run_here

ByHand = dict[str, Callable[[], Mapping]]
Split = Callable[[Network, int], Mapping]


def test_every_element_of_mappings_by_hand(hand_mapping: Mapping, tmp_path: Path) -> None:
    """Splits of channels, rows with halo, sums; residuals; several tiles; replicas."""
    program = emit(hand_mapping)
    chosen = [row.element for row in program.elements][:5]
    assert differing_here(program, tmp_path, *chosen) == []


def test_partial_sums_on_both_sides_are_emulated(by_hand: ByHand, tmp_path: Path) -> None:
    program = emit(by_hand["split_sums"]())
    recording = recorded(program)
    for element in (2, 3):
        files = export_element(program, element, recording)
        result = run_emulated(files, tmp_path / str(element))
        assert result.ok, result.failures
        assert result.output.splitlines()[-1] == GOOD
    sums = [
        instruction.kernel.gives_sums
        for row in program.elements
        if row.element in (2, 3)
        for instruction in row.instructions
        if isinstance(instruction, Compute)
    ]
    assert sorted(sums) == [False, True]


def split(models: Path, name: str, mapped: Split) -> MeshProgram:
    content = (models / f"{name}.tflite").read_bytes()
    return emit(mapped(network_of_tflite(content, name), 3))


def element_with(program: MeshProgram, *kinds: LayerKind, inputs: int = 1) -> int:
    """Return the first element that computes layers of all kinds, one of which takes so much."""
    for row in program.elements:
        computed = [each for each in row.instructions if isinstance(each, Compute)]
        layers = [program.network.layers[each.kernel.layer] for each in computed]
        has_all = set(kinds) <= {layer.kind for layer in layers}
        if has_all and any(len(layer.inputs) >= inputs for layer in layers):
            return row.element
    raise AssertionError(f"no element computes {kinds}")


SAMPLES = [
    ("kws_ref_model", (LayerKind.DEPTHWISE, LayerKind.POOLING), 1),
    ("kws_ref_model", (LayerKind.GENERAL,), 1),
    ("pretrainedResnet_quant", (LayerKind.CONVOLUTION, LayerKind.POOLING), 1),
    ("pretrainedResnet_quant", (LayerKind.CONVOLUTION,), 2),
    ("vww_96_int8", (LayerKind.DEPTHWISE,), 1),
]


@pytest.mark.parametrize(("name", "kinds", "inputs"), SAMPLES)
def test_elements_of_real_networks_are_emulated(
    name: str,
    kinds: tuple[LayerKind, ...],
    inputs: int,
    models: Path,
    split_at_random: Split,
    tmp_path: Path,
) -> None:
    program = split(models, name, split_at_random)
    element = element_with(program, *kinds, inputs=inputs)
    files = export_element(program, element, recorded(program, 2))
    result = run_emulated(files, tmp_path)
    assert result.ok, result.failures
    assert result.output.splitlines()[-1] == GOOD


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["kws_ref_model", "pretrainedResnet_quant", "vww_96_int8"])
def test_every_element_of_real_networks(
    name: str, models: Path, split_at_random: Split, tmp_path: Path
) -> None:
    program = split(models, name, split_at_random)
    assert differing_here(program, tmp_path) == []


def narrow(machine: Machine, bits: int, overflow: Overflow) -> Machine:
    kinds = tuple(
        replace(kind, array=replace(kind.array, accumulator_bits=bits, overflow=overflow))
        for kind in machine.kinds
        if kind.array is not None
    )
    assert len(kinds) == len(machine.kinds)
    return replace(machine, kinds=kinds)


@pytest.mark.parametrize("overflow", Overflow)
def test_narrow_accumulators_are_the_machines(
    overflow: Overflow, by_hand: ByHand, tmp_path: Path
) -> None:
    mapping = by_hand["split_sums"]()
    program = emit(replace(mapping, machine=narrow(mapping.machine, 16, overflow)))
    assert differing_here(program, tmp_path, 0, 2, 3) == []
    files = export_element(program, 2, recorded(program))
    wide = export_element(emit(mapping), 2)
    lines = run_here(files | {"mesh_machine.h": wide["mesh_machine.h"]}, tmp_path / "wide")
    assert lines[-1] == BAD, "the accumulators are too wide to tell"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_both_compilers_take_it_without_a_warning(
    compiler: str, by_hand: ByHand, tmp_path: Path
) -> None:
    program = emit(by_hand["several_tiles_an_element"]())
    files = export_element(program, 0, recorded(program))
    assert run_here(files, tmp_path / "a b", compiler)[-1] == GOOD


def test_other_bytes_than_recorded_are_said(by_hand: ByHand, tmp_path: Path) -> None:
    program = emit(by_hand["split_channels"]())
    recording = recorded(program)
    message = next(iter(recording.messages))
    source = program.routes[message].source
    recording.messages[message][1] ^= 1
    files = export_element(program, source, recording)
    lines = run_here(files, tmp_path / "here")
    assert lines == ["messages compared: 3, different: 1", BAD]
    result = run_emulated(files, tmp_path / "board")
    assert result.exit_status == 1
    assert result.output.splitlines()[-1] == BAD


def test_a_project_without_a_recording_builds_and_does_nothing(
    by_hand: ByHand, tmp_path: Path
) -> None:
    files = export_element(emit(by_hand["split_channels"]()), 0)
    result = run_emulated(files, tmp_path)
    assert result.output.splitlines() == ["messages compared: 0, different: 0"]
    assert result.exit_status == 0


def test_regions_are_those_of_the_program(by_hand: ByHand) -> None:
    program = emit(by_hand["residual"]())
    row = program.elements[4]
    source = export_element(program, row.element)["element.c"].decode()
    table = source.partition("element_regions[ELEMENT_REGIONS + 1u] = {")[2].partition("};")[0]
    rows = [tuple(map(int, line.strip(" {},u").split("u, "))) for line in table.split("\n")[1:-2]]
    assert rows == [(each.address, each.slot_bytes, each.slots) for each in row.regions]
