"""From a module to an artifact beside the converted program it came from, as a fixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")
pytest.importorskip("torchao", reason="torchao is not installed (pip install '.[torch]')")

import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.host_steps import DequantizeStep
from mizzen.artifact.interface import Array
from mizzen.quantize import (
    EthosUQuantizer,
    QuantizationConfig,
    get_symmetric_quantization_config,
)
from mizzen.torch import compile_converted

CALIBRATIONS = 4


@dataclass(frozen=True, eq=False)
class Built:
    """A compiled network beside the converted program that says what it must give."""

    artifact: Artifact
    exported: torch.export.ExportedProgram
    calls: Sequence[tuple[torch.Tensor, ...]]

    @property
    def on_cpu(self) -> dict[str, str]:
        """The operators on the CPU, with the first reason of each."""
        assert self.artifact.report is not None
        rows = self.artifact.report.on_cpu
        return {row.kind: row.reasons[0].message if row.reasons else "" for row in rows}

    @property
    def npu_regions(self) -> int:
        """How many regions are on the NPU."""
        return sum(step.on_npu for step in self.artifact.steps)

    def run(self, arguments: Sequence[torch.Tensor]) -> tuple[Array, ...]:
        """Run the artifact on one call's tensors."""
        found = self.artifact.run(*(value.numpy() for value in arguments))
        return found if isinstance(found, tuple) else (found,)

    def _converted(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Call the converted program, whose state is the initial one before and after."""
        state = self.exported.state_dict
        before = {name: value.detach().clone() for name, value in state.items()}
        with torch.no_grad():
            rows = leaves(self.exported.module(check_guards=False)(*arguments))
            found = [row.clone() for row in rows]
            for name, value in before.items():
                state[name].copy_(value)
        return found

    def steps_off(self) -> float:
        """Return the most that an output is off the converted program's, in steps of its scale.

        Outputs that are not real numbers, or that PyTorch computes without quantizing, count as
        off by infinity unless they are the same.
        """
        scales = {
            step.output: step.scale
            for step in self.artifact.steps
            if isinstance(step, DequantizeStep)
        }
        worst = 0.0
        for arguments in self.calls:
            expected = [row.numpy() for row in self._converted(arguments)]
            found = self.run(arguments)
            assert len(found) == len(expected)
            outputs = self.artifact.contents.outputs  # pyright: ignore[reportPrivateUsage] no other place has the scale of each output
            for index, one, other in zip(outputs, expected, found, strict=True):
                worst = max(worst, _off(one, other, scales.get(index)))
        return worst


def leaves(outputs: Any) -> list[Any]:
    """Return the tensors of a model's output, in PyTorch's order."""
    match outputs:
        case tuple() | list():
            return [leaf for row in outputs for leaf in leaves(row)]  # pyright: ignore[reportUnknownVariableType] whatever the model gives
        case dict():
            return leaves(list(outputs.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] as above
        case _:
            return [outputs]


def _off(expected: Array, found: Array, scale: float | None) -> float:
    assert expected.shape == found.shape
    assert expected.dtype == found.dtype
    if scale is None:
        return 0.0 if np.array_equal(expected, found) else float("inf")
    difference = np.rint((expected.astype(np.float64) - found.astype(np.float64)) / scale)
    return float(np.abs(difference).max(initial=0.0))


def convert(
    module: torch.nn.Module,
    calls: Sequence[tuple[torch.Tensor, ...]],
    accelerator: str = "ethos-u55-128",
    config: QuantizationConfig | None = None,
) -> torch.export.ExportedProgram:
    """Quantize a module, to int8 or as `config` says, in the published steps; export it again."""
    torch.manual_seed(0)
    quantizer = EthosUQuantizer(accelerator)
    quantizer.set_global(config or get_symmetric_quantization_config())
    exported = torch.export.export(module.eval(), calls[0])
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for arguments in calls:
            prepared(*arguments)
    return torch.export.export(convert_pt2e(prepared), calls[0])


def build(
    module: torch.nn.Module,
    *inputs: torch.Tensor,
    accelerator: str = "ethos-u55-128",
    generator: str | None = None,
) -> Built:
    """Quantize and compile a module; random inputs of the same shapes calibrate it."""
    torch.manual_seed(1)
    rows = [tuple(torch.randn_like(x) for x in inputs) for _ in range(CALIBRATIONS - 1)]
    calls = [inputs, *rows]
    exported = convert(module, calls, accelerator)
    options = None if generator is None else {"generator": generator}
    artifact = compile_converted(
        exported, accelerator, name="network", prove="off", target_options=options
    )
    return Built(artifact, exported, calls)


@pytest.fixture
def built() -> Callable[..., Built]:
    """Quantize and compile a module: `built(module, *inputs, accelerator=...)`."""
    torch.manual_seed(0)
    return build


@pytest.fixture
def converted() -> Callable[..., torch.export.ExportedProgram]:
    """Quantize a module: `converted(module, calls, accelerator, config)`."""
    torch.manual_seed(0)
    return convert
