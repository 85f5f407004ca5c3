"""Programs without an NPU, run by ExecuTorch's own runtime: the numbers are PyTorch's, exactly.

Where ExecuTorch's kernels round in another order (division by a number, cumulative sums of real
numbers), inputs are such that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.device import device_program
from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import TorchStep
from mizzen.artifact.interface import Carried, TensorInfo
from mizzen.package.device import DeviceProgram, DeviceTensor, KernelCall, TensorArgument
from mizzen.package.executorch.writing import write

from .executorch_oracle import load


def artifact_of(module: Any, inputs: Sequence[Any], states: Sequence[Any] = ()) -> Artifact:
    """Return an artifact that PyTorch computes; `states` come last, and go out last."""
    with torch.no_grad():
        results = module(*inputs, *states)
    results = results if isinstance(results, tuple) else (results,)
    exported = torch.export.export(module, (*inputs, *states))
    taken, given = len(inputs) + len(states), len(results)
    step = TorchStep(exported.module(), tuple(range(taken)), tuple(range(taken, taken + given)),
                     ("a module",), (*inputs, *states))  # fmt: skip
    tensors = [*inputs, *states, *results]
    infos = {
        index: TensorInfo(f"t{index}", tuple(row.shape), row.numpy().dtype, None)
        for index, row in enumerate(tensors)
    }
    first = taken + given - len(states)
    carried = tuple(
        Carried(len(inputs) + place, first + place, row.numpy()) for place, row in enumerate(states)
    )
    contents = Contents(tuple(range(len(inputs))), tuple(range(taken, first)), infos, (step,), {},
                        carried)  # fmt: skip
    return Artifact(b"", "a module", contents)


class Module(torch.nn.Module):
    """A function with parameters."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *given: Any) -> Any:
        return self.function(self, *given)


def of_one(function: Callable[[Any, Any], Any], **parts: Any) -> Module:
    return Module(function, **parts)


def of_two(function: Callable[[Any, Any, Any], Any], **parts: Any) -> Module:
    return Module(function, **parts)


def of_three(function: Callable[[Any, Any, Any, Any], Any], **parts: Any) -> Module:
    return Module(function, **parts)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole(*shape: int, low: int = -9, high: int = 10, dtype: torch.dtype = torch.int64) -> Any:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@dataclass(frozen=True)
class Case:
    """A module and its inputs."""

    name: str
    module: torch.nn.Module
    inputs: tuple[Any, ...]


CASES = [
    Case("arithmetic", of_two(lambda m, x, y: (x + y * 2 - m.c, x / 4, -x, x.clamp(-0.5, 0.5),
         x % 0.5),
         c=numbers(4)), (numbers(2, 3, 4), numbers(3, 1, seed=2))),
    Case("cumsum", of_one(lambda m, x: (torch.cumsum(x, 1), torch.cumsum(x > 0, 0))),
         (whole(3, 5).float(),)),
    Case("softmax", of_one(lambda m, x: torch.softmax(x, -1).argmax(-1)), (numbers(3, 7),)),
    Case("topk", of_one(lambda m, x: torch.topk(x, 3)), (numbers(2, 9),)),
    Case("largest", of_one(lambda m, x: (x.max(1)[0], x.min(0)[1], x.amax((0, 1)), x.max())),
         (numbers(4, 6),)),
    Case("lookup", of_two(lambda m, x, i: (x[i], x[:, i[0]], torch.index_select(x, 1, i[1]),
         m.e(i)), e=torch.nn.Embedding(12, 3)), (numbers(6, 6), whole(2, 4, low=0, high=6))),
    Case("writes", of_two(lambda m, x, y: torch.slice_scatter(x, y, 1, 1, 5, 2)),
         (numbers(2, 6), numbers(2, 2, seed=3))),
    Case("bool", of_two(lambda m, x, y: ((x > y) & ~(y > 0), torch.where(x > y, x, y),
         (x == y).any(1))), (numbers(3, 4), numbers(3, 4, seed=5))),
    Case("int64", of_two(lambda m, x, y: (x * y + 3, x // 4, x % 3, x % y.clamp(1),
         x << 2, x.float().int(),
         x.sum(1))), (whole(4, 5), whole(4, 5, high=90))),
    Case("int8 and uint8", of_two(lambda m, x, y: (x + 1, y.to(torch.int32) - x,
         torch.cat([x, x]))), (whole(3, 4, dtype=torch.int8),
         whole(3, 4, low=0, high=200, dtype=torch.uint8))),
    Case("views", of_one(lambda m, x: (x.permute(2, 0, 1).reshape(4, -1), x[0, 1:, ::2],
         x.unsqueeze(1), x.transpose(0, 1).expand(5, 3, 2, 4), *torch.split(x, [1, 3], 2),
         x.flatten(), torch.flip(x, [0]), x.repeat(1, 2, 1), *torch.unbind(x, 1))),
         (numbers(2, 3, 4),)),
    Case("parts that nobody wants", of_one(lambda m, x: (torch.split(x, [1, 3], 1)[1],
         torch.split(x, 3, 1)[0], torch.unbind(x, 1)[2], x.max(1)[1],
         torch.var_mean(x, 1)[1])), (whole(4, 4).float(),)),
    Case("norms", of_one(lambda m, x: (m.layer(x), m.group(x)),
         layer=torch.nn.LayerNorm(4, eps=0.0), group=torch.nn.GroupNorm(2, 4, eps=0.0)),
         (torch.tensor([[[1.0, -1.0, -1.0, 1.0]] * 4]),)),
    Case("one number", of_one(lambda m, x: (x + 1, x * m.c, x.reshape(1)), c=torch.tensor(2.0)),
         (torch.tensor(3.0),)),
    Case("pooling", of_one(lambda m, x: (torch.nn.functional.avg_pool2d(x, 2),
         torch.nn.functional.max_pool2d(x, 3, 2, 1))), (numbers(1, 3, 8, 8),)),
    Case("made here", of_one(lambda m, x: x + torch.arange(6) + torch.full((2, 1), 0.5)),
         (numbers(2, 6),)),
    Case("several names of one thing", of_one(lambda m, x: (x, m.c, x + 1, m.c * 2),
         c=numbers(3)), (numbers(3, seed=4),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gives_the_numbers_of_pytorch(case: Case) -> None:
    artifact = artifact_of(case.module.eval(), case.inputs)
    _, method = load(write(device_program(artifact)))
    found = method.execute(list(case.inputs))
    with torch.no_grad():
        wanted = case.module(*case.inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_keeps_states_from_one_inference_to_the_next() -> None:
    # `a` is what `b` was, which an output is too: the copies must not come before they are read.
    module = of_three(lambda m, x, a, b: (a, a + b + x, b, b + x))
    a, b = numbers(4, seed=7), numbers(4, seed=8)
    data = write(device_program(artifact_of(module, (numbers(4),), (a, b))))
    _, method = load(data)
    for seed in range(4):
        x = numbers(4, seed=seed)
        before, total, a, b = module(x, a, b)
        found = method.execute([x])
        np.testing.assert_array_equal(found[0].numpy(), before.numpy())
        np.testing.assert_array_equal(found[1].numpy(), total.numpy())


def look_up(counts_back: bool) -> Any:
    """Return a loaded program that narrows indices of a table of 5 rows."""
    tensors = (
        DeviceTensor("given", (2, 3), np.dtype(np.int64)),
        DeviceTensor("index", (2, 3), np.dtype(np.int32)),
    )
    arguments = (("self", TensorArgument(0)), ("size", 5), ("counts_back", counts_back))
    call = KernelCall("mizzen::narrow_index", arguments, (1,))
    return load(write(DeviceProgram("program", None, tensors, (0,), (1,), (call,))))


@pytest.mark.parametrize("counts_back", [True, False])
def test_indices_become_narrow_and_are_checked(counts_back: bool) -> None:
    _, method = look_up(counts_back)
    low = -5 if counts_back else 0
    given = torch.tensor([[0, 4, 2], [low, 3, 1]])
    (found,) = method.execute([given])
    assert found.dtype == torch.int32
    np.testing.assert_array_equal(found.numpy(), given.numpy() % 5)
    for wrong in (5, low - 1):
        with pytest.raises(RuntimeError):
            method.execute([torch.full((2, 3), wrong)])
