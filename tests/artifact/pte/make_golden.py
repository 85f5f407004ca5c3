"""Make the programs of this folder with ExecuTorch's Arm backend; see README.md.

``python make_golden.py FOLDER [NAME...]`` writes networks' ``.pte``, and ``.npz`` with `inputs`
`[calls, ...]` and `outputs` that PyTorch's quantised module gives for them, one call after another.
Of each delegate it has integers `taken0_1 [cases, ...]` (delegate 0, input 1) and what Arm's TOSA
reference model gives for them, `given0_0`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

CALIBRATION_CALLS = 4
CALLS = 6
CASES = 5
TYPES = {3: np.int8, 4: np.int16, 5: np.int32}
"""TOSA's numbers of types."""


class Cnn(nn.Module):
    """A classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, stride=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(8 * 4 * 4, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(image).flatten(1))


class DsCnn(nn.Module):
    """Keywords; the pooling's stride keeps it off Ethos-U55 in ExecuTorch's partitioner."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, (4, 3), stride=2, padding=(1, 1)), nn.ReLU())
        self.separable = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(), nn.Conv2d(8, 12, 1), nn.ReLU()
        )
        self.pool = nn.AvgPool2d((12, 5), stride=(12, 5))
        self.head = nn.Linear(12, 4)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.separable(self.stem(features))).flatten(1))


class State(nn.Module):
    """A recurrent cell whose state is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 3)
        self.hidden: torch.Tensor
        self.register_buffer("hidden", torch.zeros(1, 8))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        hidden = torch.sigmoid(self.first(given) + self.hidden)
        self.hidden.copy_(hidden)
        return self.second(hidden)


class Tiny(nn.Module):
    """A classifier of few weights."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4))
        self.head = nn.Linear(8 * 2 * 2, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(image).flatten(1))


@dataclass(frozen=True)
class Form:
    """A network and how it is exported.

    placements  of a delegate's blocks in files of data, by block
    cortex_m    whether kernels at the edge are replaced, as ExecuTorch's own script does it
    bundled     whether inputs and PyTorch's outputs go with the program
    """

    kind: type[nn.Module]
    shape: tuple[int, ...]
    accelerator: str
    dtype: str = "int8"
    placements: dict[str, str] = field(default_factory=dict)
    cortex_m: bool = False
    bundled: bool = False


TINY = (1, 1, 8, 8)
NETWORKS = {
    "ds_cnn_u55": Form(DsCnn, (1, 1, 25, 10), "ethos-u55-128"),
    "cnn_int16_u85": Form(Cnn, (1, 3, 16, 16), "ethos-u85-256", "int16"),
    "state_u85": Form(State, (1, 6), "ethos-u85-256"),
    "cortex_m_u55": Form(Tiny, TINY, "ethos-u55-128", cortex_m=True, bundled=True),
    "apart_u85": Form(
        Tiny, TINY, "ethos-u85-256", placements={"weight_data": "weights", "cmd_data": "commands"}
    ),
}
"""By name."""


class Recorder:
    """Keeps the TOSA that Vela was given; it stands in for what calls Vela."""

    def __init__(self, backend: Any) -> None:
        self._compile = backend.vela_compile
        self.networks: list[bytes] = []
        backend.vela_compile = self

    def __call__(self, flatbuffer: bytes, *arguments: Any, **options: Any) -> Any:
        self.networks.append(flatbuffer)
        return self._compile(flatbuffer, *arguments, **options)


def judged(networks: list[bytes], types: dict[int, Any]) -> dict[str, Any]:
    """Return random integers for each network, and what the reference model makes of them."""
    model: Any = import_module("tosa_reference_model")
    tosa: Any = import_module("tosa.TosaGraph")
    arrays: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for place, network in enumerate(networks):
        block = tosa.TosaGraph.GetRootAs(network).Regions(0).Blocks(0)
        tensors = {block.Tensors(i).Name(): block.Tensors(i) for i in range(block.TensorsLength())}
        taken: list[Any] = []
        for index in range(block.InputsLength()):
            tensor = tensors[block.Inputs(index)]
            dtype = types[tensor.Type()]
            limits = np.iinfo(dtype)
            shape = (CASES, *tensor.ShapeAsNumpy())
            taken.append(random.integers(limits.min, limits.max + 1, shape).astype(dtype))
            arrays[f"taken{place}_{index}"] = taken[-1]
        results = [model.run(network, [row[case] for row in taken])[0] for case in range(CASES)]
        for index, rows in enumerate(zip(*results, strict=True)):
            arrays[f"given{place}_{index}"] = np.stack(rows)
    return arrays


def bundled(made: Any, module: Any, inputs: list[torch.Tensor]) -> bytes:
    """Return a program with two examples."""
    devtools: Any = import_module("executorch.devtools")
    parts: Any = import_module("executorch.devtools.bundled_program.config")
    writer: Any = import_module("executorch.devtools.bundled_program.serialize")
    cases = [parts.MethodTestCase((given,), (module(given),)) for given in inputs[:2]]
    suites = [parts.MethodTestSuite(method_name="forward", test_cases=cases)]
    program = devtools.BundledProgram(made, suites)
    return writer.serialize_from_bundled_program_to_flatbuffer(program)


def make(name: str, folder: Path) -> None:
    """Write one network's files."""
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    arm: Any = import_module("executorch.backends.arm.ethosu")
    quantizers: Any = import_module("executorch.backends.arm.quantizer")
    exir: Any = import_module("executorch.exir")
    form = NETWORKS[name]
    torch.manual_seed(7)
    module = form.kind().eval()
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(form.shape, generator=generator) for _ in range(CALLS)]
    placed = arm.VelaExternalBlockPlacements(**form.placements) if form.placements else None
    spec = arm.EthosUCompileSpec(form.accelerator, external_block_placements=placed)
    quantizer = quantizers.EthosUQuantizer(spec)
    a8w8 = quantizers.get_symmetric_quantization_config
    a16w8 = quantizers.get_symmetric_a16w8_quantization_config
    quantizer.set_global(a8w8() if form.dtype == "int8" else a16w8())
    exported = torch.export.export(module, (inputs[0],)).module(check_guards=False)
    prepared = pt2e.prepare_pt2e(exported, quantizer)
    for array in inputs[:CALIBRATION_CALLS]:
        prepared(array)
    converted = pt2e.convert_pt2e(prepared)
    for buffer_name, buffer in converted.named_buffers():
        if buffer_name == "hidden":  # calibration has changed it
            buffer.zero_()
    program = torch.export.export(converted, (inputs[0],))
    recorder = Recorder(import_module("executorch.backends.arm.ethosu.backend"))
    partitioner = [arm.EthosUPartitioner(spec)]
    lowered = exir.to_edge_transform_and_lower(program, partitioner=partitioner)
    if form.cortex_m:
        passes: Any = import_module("executorch.backends.cortex_m.passes.replace_quant_nodes_pass")
        lowered = lowered.transform([passes.ReplaceQuantNodesPass()])
    extracted = form.dtype == "int16" or bool(form.placements)
    config = exir.ExecutorchBackendConfig(extract_delegate_segments=extracted)
    made = lowered.to_executorch(config=config)
    (folder / f"{name}.pte").write_bytes(made.buffer)
    made.write_tensor_data_to_file(str(folder))
    outputs = [converted(array).numpy() for array in inputs]
    stacked = np.stack([array.numpy() for array in inputs])
    arrays: dict[str, Any] = {"inputs": stacked, "outputs": np.stack(outputs)}
    arrays |= judged(recorder.networks, TYPES)
    if form.bundled:
        (folder / f"{name}.bpte").write_bytes(bundled(made, converted, inputs))
    np.savez_compressed(folder / f"{name}.npz", **arrays)


def main() -> None:
    """Write all networks' files."""
    torch.set_grad_enabled(False)
    for name in sys.argv[2:] or NETWORKS:
        make(name, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
