"""Networks of several NPU operators: each has code of its own, and keeps what others need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.analysis.cost import cost_report
from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.ethos_u.generator import improve, least, search, sequences
from mizzen.compiler.ethos_u.generator.constants import places
from mizzen.compiler.ethos_u.generator.equality import differing, found_in_memory
from mizzen.compiler.ethos_u.generator.handed import Enclosed, enclosed
from mizzen.compiler.ethos_u.generator.improve import improved
from mizzen.compiler.ethos_u.generator.network import parts_of
from mizzen.compiler.ethos_u.generator.search import Found
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.diagnostics import MizzenError, fail
from mizzen.report.code import CodeChoice, Verdict
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations
from mizzen.targets.ethos_u.judge.hazards import EMPTY, Intervals, find_hazards
from mizzen.targets.ethos_u.lift import Held, lift
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

from .networks import MAP, Net, report_of

U55 = "ethos-u55-128"
SHAPE = MAP[1:]


def summed(net: Net, index: int) -> int:
    """Add up a map along its channels, which only the CPU does."""
    made = net.map(f"summed-{index}")
    axis = net.constant("axis", np.array([3], np.int32))
    net.operator("CUMSUM", [index, axis], [made], ("CumsumOptions", {}))
    return made


def over_the_cpu() -> bytes:
    """Two NPU operators: a product is handed from one to the other, which the CPU knows not of."""
    net = Net()
    kept, sent = net.map("kept"), net.map("sent")
    net.operator("MUL", [net.sum, net.first], [kept], ("MulOptions", {}))
    net.operator("SUB", [net.sum, net.second], [sent], ("SubOptions", {}))
    both = net.map("both")
    net.operator("ADD", [summed(net, sent), kept], [both], ("AddOptions", {}))
    return net.finish([net.first, net.second], [net.twice(both)])


def compiled_by_vela(data: bytes, configuration: EthosUConfiguration) -> Compiled:
    found = generate(data, replace(configuration, generator=Generator.VELA))
    assert isinstance(found, Compiled)
    return found


def artifacts(data: bytes, accelerator: str) -> list[mizzen.Artifact]:
    return [
        mizzen.compile(data, accelerator, target_options={"generator": row})
        for row in ("vela", "own")
    ]


def steps(artifact: mizzen.Artifact) -> list[NpuStep]:
    return [step for step in artifact.steps if isinstance(step, NpuStep)]


def cycles(artifact: mizzen.Artifact) -> int:
    return cost_report(artifact).cycles


def give_the_same(artifacts: Sequence[mizzen.Artifact], *shapes: tuple[int, ...]) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        inputs: list[Any] = [rng.integers(-128, 128, (4, *shape), np.int8) for shape in shapes]
        theirs, ours = (artifact.run(*inputs) for artifact in artifacts)
        assert all(np.array_equal(*pair) for pair in zip(theirs, ours, strict=True))


@pytest.mark.parametrize("accelerator", [U55, "ethos-u55-32", "ethos-u65-256", "ethos-u65-512"])
def test_each_has_code_of_its_own_and_the_network_computes_the_same(accelerator: str) -> None:
    theirs, ours = artifacts(over_the_cpu(), accelerator)
    assert [row.is_own for row in report_of(ours).code] == [True, True]
    assert not report_of(ours).proof.differing
    give_the_same([theirs, ours], SHAPE, SHAPE)
    assert not any(step.hazards.diagnostics for step in steps(ours))


def test_what_nothing_names_is_part_of_the_interface() -> None:
    network, parts = parts_of(compiled_by_vela(over_the_cpu(), resolve(U55)))
    first, second = (row.program for row in enclosed(network, parts))
    assert [len(part.program.outputs) for part in parts] == [1, 1]
    (taken,) = (row for row in second.inputs if not row.name.startswith("summed"))
    assert taken.name.startswith("bytes ")
    assert taken.name not in {row.name for row in (*parts[1].program.inputs, *first.outputs)}
    # In bricks of 16 channels, of which there are 8: the rest of them is never written.
    assert taken.size_bytes == 2 * np.prod(SHAPE) - SHAPE[2]
    (given,) = (row for row in first.inputs if row.name == taken.name)
    assert given.variable
    assert (given.offset, given.size_bytes) == (taken.offset, taken.size_bytes)


def test_what_is_alive_beside_an_operator_is_state_that_it_keeps() -> None:
    net = Net()
    sent = net.map("sent")
    net.operator("SUB", [net.sum, net.first], [sent], ("SubOptions", {}))
    made = net.twice(summed(net, sent))
    data = net.finish([net.first, net.second], [made, summed(net, net.sum)])
    network, parts = parts_of(compiled_by_vela(data, resolve(U55)))
    _, found = enclosed(network, parts)
    second = found.program
    (kept,) = (row for row in second.inputs if row.variable)
    assert found.kept == {second.inputs.index(kept)}
    at = ETHOS_U.arena_offsets(network)
    (tensor,) = (row for row in network.main.tensors if row.name == "sum")
    assert (kept.offset, kept.size_bytes) == (at[tensor.index], tensor.size_bytes)
    give_the_same(artifacts(data, U55), SHAPE, SHAPE)


def test_a_program_that_spoils_what_it_must_keep_is_seen() -> None:
    network, parts = parts_of(compiled_by_vela(over_the_cpu(), resolve(U55)))
    first, _ = (row.program for row in enclosed(network, parts))
    written = next(row for row in first.outputs if row.name == "sent")
    spoilt = replace(written, name="kept", variable=True)
    program = replace(first, inputs=(*first.inputs, spoilt))
    idle = replace(program, words=program.words[-1:])
    assert differing(idle, program).endswith("differ")


def with_wide_numbers_between() -> bytes:
    """Two NPU operators: 32 bits of each number go from one to the other, to be squared there."""
    net = Net()
    sent, far = net.map("sent"), net.map("far")
    net.operator("SUB", [net.sum, net.second], [sent], ("SubOptions", {}))
    given = [summed(net, sent), net.sum]
    net.operator("SQUARED_DIFFERENCE", given, [far], ("SquaredDifferenceOptions", {}))
    return net.finish([net.first, net.second], [far])


def test_what_nothing_names_is_found_as_it_was_left() -> None:
    """Any numbers would be squares beyond 32 bits, at which Vela's words and ours stop."""
    data = with_wide_numbers_between()
    network, parts = parts_of(compiled_by_vela(data, resolve(U55)))
    programs = [row.program for row in enclosed(network, parts)]
    names = [{row.name for row in part.program.inputs} for part in parts]
    with pytest.raises(MizzenError, match="a result must fit 32 bits"):
        differing(programs[1], programs[1])
    _, found = found_in_memory(programs, names)
    assert differing(programs[1], programs[1], found) == ""
    artifact = artifacts(data, U55)
    assert [row.verdict for row in report_of(artifact[1]).code] == [Verdict.TAKEN] * 2
    give_the_same(artifact, SHAPE, SHAPE)


def without(which: int, search: improve.Searching) -> improve.Searching:
    """Return a search that keeps Vela's code of one operator."""
    count = iter(range(10))

    def one_kept(program: Program, source: Source, configuration: EthosUConfiguration) -> Found:
        if next(count) == which:
            return improve.keep(program, configuration, Verdict.DEARER, "for a test")
        return search(program, source, configuration)

    return one_kept


@pytest.mark.usefixtures("searched_anew")
@pytest.mark.parametrize("which", [0, 1])
def test_one_that_is_not_taken_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    monkeypatch.setattr(improve, "search", without(which, search.search))
    theirs, ours = artifacts(over_the_cpu(), U55)
    assert [row.is_own for row in report_of(ours).code] == [which != 0, which != 1]
    assert report_of(ours).code[which].reason == "for a test"
    shared = {step.program.constants[0].tobytes() for step in steps(ours)}
    assert len(shared) == 1
    before = steps(theirs)[0].program.constants[0]
    assert len(shared.pop()) <= len(before)
    give_the_same([theirs, ours], SHAPE, SHAPE)


def test_scratch_memory_that_is_not_the_arena_keeps_velas_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configuration = replace(resolve(U55), generator=Generator.OWN)
    compiled = compiled_by_vela(over_the_cpu(), configuration)
    offsets = ETHOS_U.arena_offsets(parts_of(compiled)[0])
    moved = {row: offset + 16 for row, offset in offsets.items()}

    def offsets_moved(*_: object) -> dict[int, int]:
        return moved

    monkeypatch.setattr(type(ETHOS_U), "arena_offsets", offsets_moved)
    network, parts = parts_of(compiled)
    with pytest.raises(MizzenError, match="E581"):
        enclosed(network, parts)
    written = improved(compiled, Source(b"", NetworkForm.TFLITE), configuration)
    assert not any(row.is_own for row in written.choices)
    assert written.network == compiled.network


@pytest.mark.parametrize(
    ("accelerator", "mode"),
    [
        (U55, "Sram_Only"),
        ("ethos-u55-256", "Shared_Sram"),
        ("ethos-u65-512", "Dedicated_Sram"),
        ("ethos-u65-256", "Shared_Sram"),
    ],
)
def test_a_model_in_pieces_is_faster_in_no_more_memory(
    model_file: Callable[[str], Path], accelerator: str, mode: str
) -> None:
    data = model_file("pretrainedResnet_quant.tflite").read_bytes()
    theirs, ours = (
        mizzen.compile(
            data,
            accelerator,
            ignore_ops=("ADD",),
            memory_mode=mode,
            target_options={"generator": row},
        )
        for row in ("vela", "best")
    )
    choices: tuple[CodeChoice, ...] = report_of(ours).code
    assert len(choices) == 4
    assert sum(row.is_own for row in choices) > 2
    assert cycles(ours) < cycles(theirs)
    for row in choices:
        assert row.vela is not None
        assert row.own is not None
        shared = row.own.arena_bytes if row.is_own else row.vela.arena_bytes
        assert shared == max(step.program.region_bytes[1] for step in steps(ours))
    areas = [{row.name: row.used_bytes for row in report_of(each).areas} for each in (theirs, ours)]
    assert areas[1]["arena"] <= areas[0]["arena"]
    give_the_same([theirs, ours], (32, 32, 3))


def test_constants_of_ours_fill_the_gaps_between_those_of_vela() -> None:
    """The least one fits before what is kept, the others only behind it."""
    kept = Intervals(np.array([40, 64]), np.array([50, 100]))
    assert places([16, 32, 48], kept) == [160, 0, 112]
    assert places([16, 16, 16], EMPTY) == [0, 16, 32]


def test_constants_may_begin_anywhere() -> None:
    configuration = replace(resolve(U55), generator=Generator.OWN)
    compiled = compiled_by_vela(over_the_cpu(), configuration)
    _, parts = parts_of(compiled)
    source = Source(b"", NetworkForm.TFLITE)
    (program, _) = (part.program for part in parts)
    found = search.search(program, source, configuration)
    assert found.schedule is not None
    moved = emit(replace(found.schedule, constants_at=4096), configuration.accelerator)
    moved = replace(moved, inputs=found.program.inputs, outputs=found.program.outputs)
    assert differing(moved, found.program) == ""
    assert not moved.constants[0][:4096].any()


@pytest.mark.parametrize("name", ["search", "least"])
def test_operations_that_cannot_be_arranged_are_done_as_they_are(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    configuration = replace(resolve(U55), generator=Generator.OWN)
    compiled = compiled_by_vela(over_the_cpu(), configuration)
    source = Source(b"", NetworkForm.TFLITE, is_shared=True)
    program, _ = (row.program for row in enclosed(*parts_of(compiled)))
    begun = source.made(program)
    place, make = {"search": (search, search.search), "least": (least, least.least)}[name]
    schedule = place.made

    def made(sequence: Operations, *given: Any) -> Any:
        if len(sequence.operations) != len(begun.sequence.operations):
            raise fail("E297", "blocks 0 and 1 lie in the same bytes")
        return schedule(sequence, *given)

    def arranged(sequence: Operations, _: EthosUConfiguration) -> list[Operations]:
        return [replace(sequence, operations=sequence.operations[:-1])]

    monkeypatch.setattr(place, "made", made)
    monkeypatch.setattr(place, "arranged", arranged)
    found = make(program, source, configuration)
    assert found.choice.is_own, found.choice.reason


def hazards(data: bytes, accelerator: str = U55) -> list[str]:
    """Return what is wrong with code of ours, tried for all operators of a network."""
    configuration = replace(resolve(accelerator), generator=Generator.OWN)
    compiled = compiled_by_vela(data, configuration)
    written = improved(compiled, Source(data, NetworkForm.TFLITE), configuration)
    return [row.reason for row in written.choices if not row.is_own]


def test_pixels_of_a_part_of_a_map_that_is_handed_on_are_brought_without_what_is_between() -> None:
    """Of a map in bricks one row is read later: bytes between its pixels hold nothing."""
    net = Net()
    kept, sent = net.map("kept"), net.map("sent")
    net.operator("MUL", [net.sum, net.first], [kept], ("MulOptions", {}))
    net.operator("SUB", [kept, net.second], [sent], ("SubOptions", {}))
    row = net.map("row", shape=(1, 1, *SHAPE[1:]))
    bounds = [
        net.constant(name, np.array(values, np.int32))
        for name, values in (("begin", (0, 1, 0, 0)), ("size", (1, 1, *SHAPE[1:])))
    ]
    net.operator("SLICE", [kept, *bounds], [row], ("SliceOptions", {}))
    both = net.map("both")
    net.operator("ADD", [summed(net, sent), row], [both], ("AddOptions", {}))
    assert not hazards(net.finish([net.first, net.second], [net.twice(both)]))


def test_all_of_what_the_cpu_gives_may_be_read() -> None:
    """Vela reads a row of windows of each image by itself, and of each what they see of it."""
    net = Net()
    images = 3, 6, 4, 8
    given = net.map("given", shape=images)
    axis = net.constant("axis", np.array([3], np.int32))
    taken, added = net.map("taken", shape=images), net.map("added", shape=images)
    net.operator("ADD", [taken, taken], [added], ("AddOptions", {}))
    net.operator("CUMSUM", [added, axis], [given], ("CumsumOptions", {}))
    layer = [
        net.constant("weights", np.ones((8, 2, 2, 8), np.int8), 0.01),
        net.constant("bias", np.zeros(8, np.int32), 0.001),
    ]
    made = net.map("made", shape=(3, 2, 4, 8))
    options = {"stride_h": 3, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    net.operator("CONV_2D", [given, *layer], [made], ("Conv2DOptions", options))
    assert not hazards(net.finish([net.first, net.second, taken], [net.sum, made]))


def test_code_that_writes_over_what_others_keep_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configuration = replace(resolve(U55), generator=Generator.OWN)
    compiled = compiled_by_vela(over_the_cpu(), configuration)
    rows = enclosed(*parts_of(compiled))

    def all_kept(*given: Any) -> list[Enclosed]:
        every = frozenset(range(len(rows[1].program.inputs)))
        return [rows[0], replace(rows[1], kept=every)]

    monkeypatch.setattr(improve, "enclosed", all_kept)
    written = improved(compiled, Source(b"", NetworkForm.TFLITE), configuration)
    first, second = written.choices
    assert (first.is_own, second.verdict) == (True, Verdict.HAZARD)
    assert "which is read behind the program" in second.reason


def test_code_that_reads_what_nobody_wrote_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = replace(resolve(U55), generator=Generator.OWN)
    compiled = compiled_by_vela(over_the_cpu(), configuration)
    rows = enclosed(*parts_of(compiled))
    assert not any(find_hazards(row.program).findings for row in rows)

    def lifted(program: Program, held: Held) -> Operations:
        """Return operations that read all of what a program takes, whatever holds something."""
        return lift(program)

    monkeypatch.setattr(sequences, "lift", lifted)

    def nothing_held(*given: Any) -> list[Enclosed]:
        return [replace(rows[0], held={}), rows[1]]

    monkeypatch.setattr(improve, "enclosed", nothing_held)
    written = improved(compiled, Source(b"", NetworkForm.TFLITE), configuration)
    first, second = written.choices
    assert (first.verdict, second.is_own) == (Verdict.HAZARD, True)
    assert "nothing has written" in first.reason
