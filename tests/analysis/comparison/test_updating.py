"""What tells artifacts apart: pairs of a network that differ in one thing each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.analysis.comparison.updating import difference, failures_of, held, notes_of
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.steps import NpuStep
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.report.difference import Change, Difference, Update


@dataclass(frozen=True)
class Net:
    """Two dense layers and, on the processor, what the NPU has not.

    bias     added to all biases, which are 10 bytes each with their scale, whatever they are
    zeros    of the first layer's weights, which makes their code shorter
    width    of what is between the layers
    scale    of the output
    said     what the file says of itself
    on_cpu   an operator that only the processor has, at the end
    """

    bias: int = 0
    zeros: int = 0
    width: int = 16
    scale: float = 0.5
    name: str = "scores"
    said: str = "pair"
    on_cpu: bool = False
    accelerator: str = "ethos-u55-128"

    def network(self) -> bytes:
        rng = np.random.default_rng(7)
        net = NetworkBuilder(self.said)
        x = net.tensor("x", (1, 32), "int8", 0.5, 3)
        first = rng.integers(-127, 128, (self.width, 32)).astype(np.int8)
        first.ravel()[: self.zeros] = 0
        second = rng.integers(-127, 128, (8, self.width)).astype(np.int8)
        last = "raw" if self.on_cpu else self.name
        h = self._dense(net, "hidden", x, first, 4.0)
        y = self._dense(net, last, h, second, self.scale)
        if self.on_cpu:
            z = net.tensor(self.name, (1, 8), "int8", self.scale)
            net.operator("FLOOR_MOD", [y, y], [z])
            y = z
        return net.finish([x], [y])

    def _dense(
        self, net: NetworkBuilder, name: str, x: int, weights: npt.NDArray[np.int8], scale: float
    ) -> int:
        held_weights = net.constant(f"{name}_weights", weights, [0.25])
        bias = net.constant(
            f"{name}_bias", np.arange(len(weights), dtype=np.int32) + self.bias, [0.125]
        )
        y = net.tensor(name, (1, len(weights)), "int8", scale)
        net.operator("FULLY_CONNECTED", [x, held_weights, bias], [y])
        return y


@cache
def made(net: Net) -> Artifact:
    return mizzen.compile(net.network(), net.accelerator, prove="off")


def between(before: Net, now: Net) -> Difference:
    return difference(made(before), made(now))


PLAIN = Net()
NAMES = ("old.tflite", "new.tflite")


def changes(found: Difference) -> dict[str, tuple[Change, ...]]:
    return {each.layer.name: each.changes for each in found.layers}


def test_a_network_is_the_same_as_itself() -> None:
    found = between(PLAIN, PLAIN)
    assert found.update is Update.NOTHING
    assert found.is_same
    assert not found.layers
    assert not found.send_bytes
    assert not list(failures_of(found, Update.NOTHING, NAMES))


def test_what_a_file_says_of_itself_is_no_difference() -> None:
    other = replace(PLAIN, said="another description, and a longer one")
    found = between(PLAIN, other)
    assert made(other).data != made(PLAIN).data
    assert found.is_same
    assert not found.send_bytes


def test_other_biases_are_a_model_only_update() -> None:
    found = between(PLAIN, replace(PLAIN, bias=1000))
    assert found.update is Update.CONSTANTS
    assert not found.reasons
    assert set(changes(found).values()) == {(Change.WEIGHTS,)}
    (part,) = found.of("constants")
    before, now = (
        step.program.constants[0].tobytes()
        for artifact in (made(PLAIN), made(replace(PLAIN, bias=1000)))
        for step in artifact.steps
        if isinstance(step, NpuStep)
    )
    patched = bytearray(before)
    for start, end in part.ranges:
        patched[start:end] = now[start:end]
    assert bytes(patched) == now
    assert found.send_bytes == part.sent_bytes < len(now)


def test_a_shorter_code_of_weights_changes_the_stream() -> None:
    found = between(PLAIN, replace(PLAIN, zeros=400))
    assert found.update is Update.MODEL
    (stream,) = found.of("command stream")
    assert any("SET_WEIGHT" in told or "DMA" in told for told in stream.told), stream.told
    assert changes(found)["hidden"] == (Change.WEIGHTS,)
    assert any(reason.startswith("the command stream") for reason in found.reasons)


def test_other_scales_of_an_output_are_told() -> None:
    found = between(PLAIN, replace(PLAIN, scale=0.25))
    assert found.update is Update.SCALES
    assert found.interface == (
        "output 0 scores has scale 0.25, zero point 0 instead of scale 0.5, zero point 0",
    )
    assert changes(found) == {"scores": (Change.QUANTISATION,)}


def test_a_wider_layer_needs_no_other_firmware_if_the_arena_has_room() -> None:
    found = between(replace(PLAIN, width=32), PLAIN)
    assert found.update is Update.MODEL
    assert changes(found) == {"hidden": (Change.SHAPE,), "scores": (Change.SHAPE,)}
    wider = between(PLAIN, replace(PLAIN, width=256))
    assert wider.update is Update.FIRMWARE
    assert wider.reasons[0].startswith("the arena is ")


def test_what_the_firmware_must_have_is_told() -> None:
    found = between(PLAIN, replace(PLAIN, on_cpu=True))
    assert found.update is Update.FIRMWARE
    assert "the firmware must have tflite::FLOOR_MOD" in found.reasons
    assert changes(found)["scores"] in ((Change.ADDED,), (Change.REMOVED,))
    back = between(replace(PLAIN, on_cpu=True), PLAIN)
    assert not any("must have" in reason for reason in back.reasons)


def test_an_other_name_breaks_firmware() -> None:
    found = between(PLAIN, replace(PLAIN, name="classes"))
    assert found.update is Update.FIRMWARE
    assert found.interface == ("output 0 scores is called classes",)


def test_an_other_npu_needs_other_firmware() -> None:
    found = between(PLAIN, replace(PLAIN, accelerator="ethos-u55-256"))
    assert found.update is Update.FIRMWARE
    assert "it is for ethos-u55-256 instead of ethos-u55-128" in found.reasons


def select(accelerator: str) -> Artifact:
    """A selection, which Ethos-U55 does not have."""
    net = NetworkBuilder("select")
    condition = net.tensor("condition", (1, 16), "bool")
    x, y, z = (net.tensor(name, (1, 16), "int8", 0.5) for name in ("x", "y", "chosen"))
    net.operator("SELECT_V2", [condition, x, y], [z])
    return mizzen.compile(net.finish([condition, x, y], [z]), accelerator, prove="off")


def test_a_layer_that_moves_is_told() -> None:
    on_cpu, on_npu = select("ethos-u55-128"), select("ethos-u85-256")
    assert changes(difference(on_cpu, on_npu)) == {"chosen": (Change.TO_NPU,)}
    assert changes(difference(on_npu, on_cpu)) == {"chosen": (Change.TO_CPU,)}


def bare(net: Net) -> Artifact:
    """The artifact without its report, as a file alone is read."""
    return mizzen.load(made(net).data)


def test_an_artifact_without_its_report_has_the_layers_of_the_other() -> None:
    other = replace(PLAIN, bias=1000)
    for found in (difference(made(PLAIN), bare(other)), difference(bare(PLAIN), made(other))):
        assert found.update is Update.CONSTANTS
        assert changes(found) == {"hidden": (Change.WEIGHTS,), "scores": (Change.WEIGHTS,)}
    other_npu = replace(PLAIN, accelerator="ethos-u55-256")
    found = difference(made(PLAIN), bare(other_npu))
    assert "it is for ethos-u55-256 instead of ethos-u55-128" in found.reasons


def test_operations_are_told_where_no_layers_are_known() -> None:
    found = difference(made(PLAIN), bare(replace(PLAIN, on_cpu=True)))
    assert [(each.layer.kind, each.changes) for each in found.layers] == [
        ("FLOOR_MOD", (Change.ADDED,))
    ]


def test_an_executorch_program_is_of_another_runtime(tmp_path: Path) -> None:
    made(PLAIN).save(tmp_path / "net.pte")
    program = mizzen.load(tmp_path / "net.pte")
    found = difference(made(PLAIN), program)
    assert found.update is Update.FIRMWARE
    assert "a runtime of .tflite does not open .pte" in found.reasons
    (stream,) = found.of("command stream")
    assert not stream.differing
    made(replace(PLAIN, bias=9)).save(tmp_path / "other.pte")
    between_programs = difference(program, mizzen.load(tmp_path / "other.pte"))
    assert between_programs.update is Update.CONSTANTS


def test_what_no_microcontroller_loads_is_said_to_be_unknown() -> None:
    whole = mizzen.compile(PLAIN.network(), "ethos-n78-4tops-4ple", prove="off")
    other = mizzen.compile(replace(PLAIN, bias=1000).network(), "ethos-n78-4tops-4ple", prove="off")
    found = difference(whole, other)
    assert found.update is Update.FIRMWARE
    (note,) = notes_of(found)
    assert note.render().startswith(
        "warning[W336]: what a device must be sent is known of sequences of calls alone, and the "
        "whole file is taken for it: an artifact for a microcontroller must be for an Ethos-U"
    )
    again = artifact_of(unsealed(whole.data, whole.name), whole.name)
    assert again.data != whole.data
    assert difference(whole, again).is_same


def test_a_failure_names_what_forbids_it() -> None:
    (failure,) = failures_of(between(PLAIN, replace(PLAIN, scale=0.25)), Update.CONSTANTS, NAMES)
    assert failure.code == "E825"
    assert failure.message == (
        "from old.tflite to new.tflite a device may be sent constants, and must be sent scales: "
        "output 0 scores has scale 0.25, zero point 0 instead of scale 0.5, zero point 0; the "
        "tables differ (1 tensor)"
    )
    assert failure.help == "--allow scales takes it"


@pytest.mark.parametrize("seed", range(20))
def test_ranges_make_the_old_bytes_the_new_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 3, int(rng.integers(0, 80))).astype(np.uint8).tobytes()
    now = rng.integers(0, 3, int(rng.integers(0, 80))).astype(np.uint8).tobytes()
    part = held("constants", "", before, now)
    patched = bytearray(before[: len(now)].ljust(len(now), b"\0"))
    for start, end in part.ranges:
        patched[start:end] = now[start:end]
    assert bytes(patched) == now
    same = sum(a == b for a, b in zip(before, now, strict=False))
    assert part.differing == max(len(before), len(now)) - same
    assert all(one[1] + 8 < other[0] + 1 for one, other in pairwise(part.ranges))
