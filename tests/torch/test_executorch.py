"""ExecuTorch's own lowering with Mizzen's partitioner: what the tutorial for Ethos-U does.

Everything but the names of Mizzen is ExecuTorch's, released.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "executorch", reason="ExecuTorch is not installed (pip install '.[executorch]')"
)

import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.package.executorch import vela_bin
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.vela_ini import SYSTEMS
from mizzen.targets.ethos_u.vela.generate import options_text
from mizzen.torch import (
    EthosUCompileSpec,
    EthosUPartitioner,
    EthosUQuantizer,
    VelaExternalBlockPlacements,
    compile_converted,
    get_symmetric_quantization_config,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

FAST_BYTES = 384 << 10
"""Of the memory mode that U65 has by default: the firmware gives the fast memory, not the file."""

U55, U65, U85 = "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"


class Classifier(nn.Module):
    """All of it is for the NPU."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(8, 10)
        self.norm = nn.LayerNorm(10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.norm(self.head(self.features(x).flatten(1)))
        return torch.softmax(y * 2 + 1, -1).reshape(-1, 2, 5).transpose(1, 2), torch.cumsum(y, 1)


class Island(nn.Module):
    """Two parts for the NPU around a sort, which it has not; the first layer's kind is in both."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.behind(torch.sort(torch.relu(self.before(x)), -1)[0])


class Attending(nn.Module):
    """Views in one scale between operators, and a value that several operators take."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Summing(nn.Module):
    """State that the program changes."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("total", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.copy_(self.total * 0.5 + self.linear(x))
        return torch.relu(self.total)


def converted(model: nn.Module, spec: EthosUCompileSpec, *shape: int) -> Any:
    """Return a quantised program, as the tutorial makes one."""
    torch.manual_seed(0)
    example = (torch.randn(shape),)
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config())
    module = torch.export.export(model.eval(), example).module(check_guards=False)
    prepared = prepare_pt2e(module, quantizer)
    with torch.no_grad():
        for _ in range(4):
            prepared(torch.randn(shape))
    return torch.export.export(convert_pt2e(prepared), example)


def lowered(exported: Any, spec: EthosUCompileSpec, checks: Sequence[Any] = ()) -> Any:
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    partitioner: Any = EthosUPartitioner(spec, checks)
    return to_edge_transform_and_lower(
        exported,
        partitioner=[partitioner],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


@cache
def classifier(accelerator: str) -> tuple[EthosUCompileSpec, Any]:
    """Return a specification and the quantised classifier, which no test changes."""
    spec = EthosUCompileSpec(accelerator)
    return spec, converted(Classifier(), spec, 1, 3, 16, 16)


@cache
def classifier_in_file(accelerator: str) -> Any:
    """Return the `.pte` of the classifier, all of it lowered."""
    spec, exported = classifier(accelerator)
    return in_file(lowered(exported, spec))


def in_file(manager: Any) -> Any:
    """Return the program of the `.pte` that ExecuTorch writes, as ExecuTorch reads it."""
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir._serialize._program import deserialize_pte_binary

    finished = manager.to_executorch(
        config=ExecutorchBackendConfig(extract_delegate_segments=False)
    )
    file = io.BytesIO()
    finished.write_to_file(file)
    return deserialize_pte_binary(file.getvalue()).program


def payloads(program: Any) -> list[vela_bin.VelaBin]:
    (plan,) = program.execution_plan
    assert {row.id for row in plan.delegates} == {"EthosUBackend"}
    return [
        vela_bin.read(bytes(program.backend_delegate_data[row.processed.index].data), "delegate")
        for row in plan.delegates
    ]


def run(call: vela_bin.VelaBin, inputs: Sequence[Any]) -> list[Any]:
    """Execute a delegate as the runtime does: inputs into the scratch memory, outputs out of it."""
    payload = driver.parse(call.commands)
    program = Program(
        words=payload.words,
        hardware=payload.hardware,
        region_bytes={0: len(call.weights), 1: call.scratch_bytes, 2: FAST_BYTES},
        constants={0: np.frombuffer(call.weights, np.uint8)},
        inputs=(),
        outputs=(),
    )
    scratch = np.zeros((1, call.scratch_bytes), np.uint8)
    for place, array in zip(call.inputs, inputs, strict=True):
        scratch[0, place.offset_bytes : place.end] = (
            np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        )
    Simulator(program).run_in({1: scratch, 2: np.zeros((1, FAST_BYTES), np.uint8)}, 1)
    return [
        scratch[0, place.offset_bytes : place.end].view(np.int8).reshape(place.shape)
        for place in call.outputs
    ]


@pytest.mark.parametrize("accelerator", [U55, U65, U85])
def test_the_delegate_computes_what_the_artifact_computes(accelerator: str) -> None:
    _, exported = classifier(accelerator)
    (call,) = payloads(classifier_in_file(accelerator))
    artifact = compile_converted(exported, accelerator)
    image = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    contents: Any = artifact.contents
    quantize, _, *behind = contents.steps
    values: dict[int, Any] = {quantize.input: image}
    quantize.run(values, 1)
    found = run(call, [values[quantize.output]])
    theirs = artifact.run(image)
    assert isinstance(theirs, tuple)
    for ours, wanted, step in zip(found, theirs, behind, strict=True):
        values = {step.input: ours.reshape(wanted.shape)}
        step.run(values, 1)
        assert np.array_equal(values[step.output], wanted)


def test_what_is_around_the_delegate_is_rounding_alone() -> None:
    (plan,) = classifier_in_file(U55).execution_plan
    assert [row.name for row in plan.operators] == [
        "quantized_decomposed::quantize_per_tensor",
        "quantized_decomposed::dequantize_per_tensor",
    ]


def test_what_changes_no_number_is_in_the_delegate_with_what_is_around_it() -> None:
    spec = EthosUCompileSpec(U55)
    exported = converted(Attending(), spec, 1, 6, 16)
    before = str(exported.graph)
    manager = lowered(exported, spec)
    assert str(exported.graph) == before
    names = [node.name for node in manager.exported_program().graph.nodes]
    assert [name for name in names if name.startswith("aten")] == []
    assert sum(name.startswith("executorch_call") for name in names) == 1
    finished = io.BytesIO(bytes(manager.to_executorch().buffer))
    x = torch.randn(1, 6, 16)
    found = artifact_of(finished.getvalue(), "attending.pte").run(x.numpy())
    assert isinstance(found, np.ndarray)
    wanted = exported.module(check_guards=False)(x)
    step = float(wanted.unique().diff().min())
    assert np.abs(found - wanted.numpy()).max() <= 1.01 * step


def test_what_executorchs_own_partitioner_asks_is_in_the_graph() -> None:
    """It takes what is said to be quantised; a mean it could not lower by itself."""
    _, exported = classifier(U55)
    said = {
        node.name: node.meta["custom"]["_arm_annotation_info"]["quantized"]
        for node in exported.graph.nodes
        if "_arm_annotation_info" in node.meta.get("custom", {})
    }
    assert said["conv2d"]
    assert said["linear"]
    assert not said["adaptive_avg_pool2d"]


def test_a_recurrent_layer_is_one_delegate() -> None:
    """Its results are taken apart by what is no operator of ATen."""
    spec = EthosUCompileSpec(U55)

    class Listening(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.GRU(4, 6, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)[0]

    manager = lowered(converted(Listening(), spec, 1, 3, 4), spec)
    (call,) = payloads(in_file(manager))
    assert [row.shape[-2:] for row in call.outputs] == [(3, 6)]


def test_a_sort_stays_between_two_delegates() -> None:
    spec = EthosUCompileSpec(U55)
    manager = lowered(converted(Island(), spec, 1, 8), spec)
    names = [node.name for node in manager.exported_program().graph.nodes]
    calls = [place for place, name in enumerate(names) if name.startswith("executorch_call")]
    sort = names.index("aten_sort_default")
    assert len(calls) == 2
    assert calls[0] < sort < calls[1]


def test_state_that_the_program_changes_is_given_and_taken() -> None:
    spec = EthosUCompileSpec(U55)
    program = in_file(lowered(converted(Summing(), spec, 1, 8), spec))
    (call,) = payloads(program)
    assert len(call.inputs) == 2
    assert "aten::copy_" in [row.name for row in program.execution_plan[0].operators]


def test_what_a_check_keeps_back_is_taken_apart_by_executorch() -> None:
    """A linear layer outside the NPU is of core ATen operators, as ExecuTorch's kernels want it."""
    spec, exported = classifier(U55)

    def keep(node: Any) -> str | None:
        kept = node.target is not None and "linear" in str(node.target)
        return "kept for a test" if kept else None

    manager = lowered(exported, spec, [keep])
    names = {node.name for node in manager.exported_program().graph.nodes}
    assert "aten_addmm_default" in names
    assert "aten_linear_default" not in names
    assert len(payloads(in_file(manager))) == 2


def test_nodes_are_tagged_and_nothing_else_is_changed() -> None:
    from executorch.exir.backend.partitioner import DelegationSpec, PartitionResult

    spec = EthosUCompileSpec(U55)
    exported = converted(Island(), spec, 1, 8)
    before = str(exported.graph)
    result = EthosUPartitioner(spec).partition(exported)
    assert isinstance(result, PartitionResult)
    assert result.tagged_exported_program is exported
    assert str(exported.graph) == before
    assert list(result.partition_tags) == ["tag0", "tag1"]
    for row in result.partition_tags.values():
        assert isinstance(row, DelegationSpec)
        assert row.backend_id == "EthosUBackend"
        assert {item.key for item in row.compile_specs} >= {"tosa_spec", "compile_flags", "target"}
    tags = {node.name: node.meta.get("delegation_tag") for node in exported.graph.nodes}
    assert tags["linear"] == "tag0"
    assert tags["linear_1"] == "tag1"
    assert tags["sort"] is None
    assert tags["x"] is None
    assert tags["quantize_per_tensor"] is None


def test_the_same_network_gives_the_same_bytes() -> None:
    spec = EthosUCompileSpec(U55)
    exported = converted(Island(), spec, 1, 8)
    assert payloads(in_file(lowered(exported, spec))) == payloads(in_file(lowered(exported, spec)))


def test_no_path_is_in_the_file(tmp_path: Any) -> None:
    own = tmp_path / "own.ini"
    own.write_bytes(SYSTEMS.read_bytes())
    names = ("Ethos_U55_High_End_Embedded", "Shared_Sram")
    spec = EthosUCompileSpec(U55, *names, config_ini=str(own))
    program = in_file(lowered(converted(Island(), spec, 1, 8), spec))
    (row, _) = program.execution_plan[0].delegates
    assert not any(b"own.ini" in bytes(item.value) for item in row.compile_specs)


def test_a_custom_operator_for_the_npu_must_have_a_form() -> None:
    partitioner = EthosUPartitioner(EthosUCompileSpec(U55))
    partitioner.register_custom_partition_op(torch.ops.aten.gelu.default)
    with pytest.raises(MizzenError) as caught:
        partitioner.register_custom_partition_op(torch.ops.aten.sort.default)
    assert str(caught.value) == (
        "error[E888]: an operator for the NPU must have a form in integers, and aten.sort.default "
        "has none\n"
        "  help write it with PyTorch's own operators; `mizzen.torch` knows those"
    )


def test_executorchs_programs_have_tensors_without_dimensions() -> None:
    from executorch.exir import to_edge

    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.sum(x) + 2.5

    x = torch.tensor([[1.0, -2.0, 4.0]])
    program = to_edge(torch.export.export(Scaled(), (x,))).to_executorch()
    found = artifact_of(bytes(program.buffer), "scaled.pte").run(x.numpy())
    assert np.array_equal(found, Scaled()(x).numpy())


def test_without_executorch_a_partitioner_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mizzen.torch.executorch import tagging

    def nothing(name: str) -> None:
        assert name == "executorch"

    monkeypatch.setattr(tagging, "find_spec", nothing)
    spec = EthosUCompileSpec(U55)
    with pytest.raises(MizzenError) as caught:
        EthosUPartitioner(spec).partition(converted(Island(), spec, 1, 8))
    assert str(caught.value) == (
        "error[E885]: a partitioner of ExecuTorch's needs ExecuTorch, which is not installed\n"
        "  help pip install '.[executorch]' in Mizzen's folder; Artifact.save needs none"
    )


def test_a_part_that_the_compiler_does_not_take_is_an_error() -> None:
    """Whoever tags by himself has not asked the compiler."""
    from mizzen.torch.executorch.backend import payload_of
    from mizzen.torch.executorch.specification import rows_of

    class Bits(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x & 3

    part = torch.export.export(Bits(), (torch.ones(1, 8, dtype=torch.int32),))
    with pytest.raises(MizzenError) as caught:
        payload_of(part, rows_of(EthosUCompileSpec(U55)))
    found = caught.value.diagnostic
    assert found.code == "E886"
    assert found.message.startswith("the compiler must take each part that was tagged, and does")
    assert found.help is not None
    assert found.help.startswith("use to_edge_transform_and_lower, which lets the partitioner")


def test_a_specification_with_a_file_of_the_users_is_known_in_its_process_alone() -> None:
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    from mizzen.torch.executorch.specification import spec_from

    flags = b"--accelerator-config=ethos-u55-128 --system-config=Mine --memory-mode=Shared_Sram"
    rows = [
        CompileSpec("target", b"ethos-u55-128"),
        CompileSpec("compile_flags", flags),
        CompileSpec("mizzen_spec", b"0" * 64),
    ]
    with pytest.raises(MizzenError) as caught:
        spec_from(rows)
    assert str(caught.value) == (
        "error[E887]: a specification whose system a file describes must be used in the process "
        "that made it, since the file's path is in no artifact\n"
        "  help make the EthosUCompileSpec with its config_ini again, and lower with that"
    )


def test_rows_of_a_file_that_vela_brings_say_enough() -> None:
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    from mizzen.torch.executorch.specification import rows_of, spec_from

    spec = EthosUCompileSpec(
        U65, memory_mode="Dedicated_Sram_256KB", extra_flags=["--optimise=Size"]
    )
    known = {row.key: bytes(row.value) for row in rows_of(spec)}
    other = [CompileSpec(key, value) for key, value in known.items() if key != "mizzen_spec"]
    again = spec_from([*other, CompileSpec("mizzen_spec", b"of another process")])
    assert again.configuration.accelerator.name == U65
    assert again.configuration.mode.name == "Dedicated_Sram_256KB"
    assert again.configuration.optimise is spec.configuration.optimise


def test_blocks_in_files_of_their_own_are_refused() -> None:
    assert VelaExternalBlockPlacements().weight_data is None
    with pytest.raises(MizzenError) as caught:
        VelaExternalBlockPlacements(weight_data="flash")
    assert str(caught.value) == (
        "error[E889]: weight_data must be in the .pte, and is to be in the file of 'flash'\n"
        "  help leave it None: a runtime uses the block where the .pte lies, in flash"
    )


def test_flags_without_effect_are_taken_and_noted() -> None:
    flags = ["--output-format=raw", "--debug-force-regor", "--verbose-all", "--recursion-limit 900"]
    spec = EthosUCompileSpec(U55, extra_flags=flags)
    assert [row.message for row in spec.notes] == [
        "--debug-force-regor has no effect: Vela's present core takes no notice of it",
        "--verbose-all only prints, and nothing is printed here",
        "--recursion-limit has no effect: Vela's present core takes no notice of it",
    ]
    assert spec.configuration == EthosUCompileSpec(U55).configuration


def test_flags_that_place_tensors_reach_the_compiler() -> None:
    flags = ["--tensor-allocator", "Greedy", "--cpu-tensor-alignment=64"]
    configuration = EthosUCompileSpec(U55, extra_flags=flags).configuration
    assert configuration.tensor_allocator.value == "Greedy"
    assert configuration.tensor_alignment_bytes == 64
    found = options_text(configuration).splitlines()
    assert {"tensor_allocator=Greedy", "cpu_tensor_alignment=64"} <= set(found)
