"""State: what a program writes stays written, and calibration does not change what ships."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn


class Stateful(nn.Module):
    """A sum over time, and a cache with one row that is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.total = nn.Buffer(torch.full((1, 4), 0.25))
        self.cache = nn.Buffer(torch.zeros(1, 3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.total.add_(self.layer(x))
        self.total.clamp_(-2, 2)
        self.cache[:, 1].copy_(torch.relu_(self.layer(self.total)))
        return self.total * 1, self.cache * 2


def test_the_state_that_ships_is_the_one_before_calibration(quantize: Callable[..., Any]) -> None:
    flow = quantize(Stateful(), torch.randn(1, 4))
    assert torch.equal(flow.converted.total, torch.full((1, 4), 0.25))
    assert torch.equal(flow.converted.cache, torch.zeros(1, 3, 4))


def test_the_state_is_written_at_every_call(quantize: Callable[..., Any]) -> None:
    flow = quantize(Stateful(), torch.randn(1, 4))
    total, cache = torch.full((1, 4), 0.25), torch.zeros(1, 3, 4)
    layer = flow.float_module.layer
    # Every step rounds a sum and a product once, so errors grow by two steps of 8 bits a call.
    steps = max(scale for scale, *_ in flow.quantizations())
    for call in range(1, 4):
        x = 0.2 * torch.randn(1, 4)  # within the range that calibration saw
        total = (total + layer(x)).clamp(-2, 2)
        cache[:, 1] = torch.relu(layer(total))
        found = flow.converted(x)
        assert (found[0] - total).abs().max() < 2 * call * steps
        assert (found[1] - 2 * cache).abs().max() < 4 * call * steps


def test_what_is_read_and_what_is_written_share_a_scale(quantize: Callable[..., Any]) -> None:
    flow = quantize(Stateful(), torch.randn(1, 4))
    for node in flow.converted.graph.nodes:
        if str(node.target) != "aten.copy_.default":
            continue
        buffer, written = node.args
        reader = next(user for user in buffer.users if "read_state" in str(user.target))
        read = next(iter(reader.users))
        assert read.args[1:3] == written.args[1:3]


# torch.export's own, when it copies a program
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning")
def test_writes_are_in_the_exported_program(quantize: Callable[..., Any]) -> None:
    x = torch.randn(1, 4)
    flow = quantize(Stateful(), x)
    program = torch.export.export(flow.converted, (x,)).run_decompositions({})
    assert sorted(program.graph_signature.buffers_to_mutate.values()) == ["cache", "total"]


def test_who_reads_a_file_knows_the_operator_without_a_quantiser() -> None:
    """A process that only loads a program has imported nothing that calibrates."""
    lines = (
        "import sys, torch, mizzen.quantize",
        "mizzen.quantize.register_operators()",
        "torch.ops.mizzen.read_state.default",
        "assert 'mizzen.quantize.observers' not in sys.modules",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
