"""What the zoo knows of a network, and how untrained networks get lifelike activations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

SEED = 20
CALIBRATION_INPUTS = 4
SETTLING_BATCHES = 2
SETTLING_BATCH = 8

MEAN_BIAS = 1.5
"""Of norms, in standard deviations. Most units are then active, as in trained networks. A deep
network of random weights around 0 is chaotic instead: the slightest rounding changes its outputs
altogether, float32's too."""

Norm = nn.BatchNorm1d | nn.BatchNorm2d | nn.LayerNorm
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)


@dataclass(frozen=True)
class Entry:
    """A network with its inputs; everything about it is the same in every process.

    network  makes the module, with PyTorch's initial weights
    inputs   gives a batch of so many inputs, drawn with a seed: a tensor [batch, ...]
    prepare  makes the weights worth compiling, in place
    """

    name: str
    summary: str
    network: Callable[[], nn.Module]
    inputs: Callable[[int, int], Tensor]
    prepare: Callable[[Entry, nn.Module], None]

    def build(self) -> nn.Module:
        """Return the network for inference, whatever the caller's random state and gradients."""
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(SEED)
            module = self.network()
            self.prepare(self, module)
        return module.eval()

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Return arguments of one call, batch 1."""
        return (self.inputs(1, SEED),)

    def calibration(self) -> list[tuple[Tensor, ...]]:
        """Return the arguments of the calls that an observer of ranges should see."""
        return [(self.inputs(1, SEED + 1 + index),) for index in range(CALIBRATION_INPUTS)]


def settle(entry: Entry, module: nn.Module) -> None:
    """Vary the channels of each norm, then let batch norms see data.

    Batch norms of a new network pass everything through: deep networks then die out or explode,
    and all channels have one range, which no trained network has.
    """
    with torch.no_grad():
        for norm in varied_norms(module):
            if not isinstance(norm, nn.LayerNorm):
                norm.momentum = None  # the plain mean over the batches below
        module.train()
        for batch in range(SETTLING_BATCHES):
            module(entry.inputs(SETTLING_BATCH, 1000 + batch))


def varied_norms(module: nn.Module) -> list[Norm]:
    """Give the channels of each norm scales and offsets of their own; returns the norms."""
    norms = [part for part in module.modules() if isinstance(part, NORMS)]
    with torch.no_grad():
        for norm in norms:
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.normal_(MEAN_BIAS, 0.2)
    return norms
