"""Programs that ExecuTorch exports here: its runtime and ours give the same.

Numbers are whole, so that no kernel rounds: each library sums in an order of its own.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn

from mizzen.artifact.loading import artifact_of

with warnings.catch_warnings():  # its import warns of much
    warnings.simplefilter("ignore")
    exir: Any = pytest.importorskip("executorch.exir", reason="ExecuTorch is not installed")
    runtime: Any = pytest.importorskip("executorch.runtime")


def whole(*shape: int, low: int = -8, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, 9, shape, generator=generator).float()


class Counter(nn.Module):
    """A buffer whose first contents nobody says, and a view that is the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.linear.weight.data, self.linear.bias.data = whole(3, 4), whole(3)
        self.total: torch.Tensor
        self.register_buffer("total", torch.zeros(2, 3))

    def forward(self, given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        now = self.linear(given)
        self.total.copy_(self.total + now)
        return now.view(3, 2) + 1, torch.cat([now, self.total]).clamp(min=0.5)


class Convolution(nn.Module):
    """Kernels with windows, and memory that is used again."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(4, 2, 1)
        for row in (self.first, self.second):
            row.weight.data = whole(*row.weight.shape)
            assert row.bias is not None
            row.bias.data = whole(len(row.bias))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.amax(torch.relu(self.second(torch.relu(self.first(image)))), (2, 3))


class Numbers(nn.Module):
    """Types, single numbers, indices, lists of tensors."""

    def forward(self, given: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, rest = torch.split(given, [1, 3], 0)
        best, place = torch.topk(given, 2)
        return (
            rows * given.sum(),
            rest[index] > 0,
            torch.stack([best, best + 1]).to(torch.int32),
            place,
            torch.where(given > 0, given, 0.0).cumsum(1),
        )


CASES: list[tuple[nn.Module, tuple[torch.Tensor, ...]]] = [
    (Counter(), (whole(2, 4),)),
    (Convolution(), (whole(1, 3, 6, 6),)),
    (Numbers(), (whole(4, 5), torch.tensor([2, 0]))),
]


@pytest.mark.parametrize(("module", "inputs"), CASES, ids=lambda row: type(row).__name__)
def test_gives_what_its_own_runtime_gives(
    module: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> None:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = exir.to_edge(torch.export.export(module.eval(), inputs))
        data = edge.to_executorch().buffer
    program = runtime.Runtime.get().load_program(data)
    method, session = program.load_method("forward"), artifact_of(data, "net.pte").session()
    for _ in range(3):
        wanted = method.execute(list(inputs))
        found = session.run(*(row.numpy() for row in inputs))
        found = found if isinstance(found, tuple) else (found,)
        assert len(found) == len(wanted)
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.dtype == theirs.numpy().dtype
            np.testing.assert_array_equal(ours, theirs.numpy())
