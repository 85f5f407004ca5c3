"""The recurrent node of a prepared program: a module that observes inside of its recurrence.

It stands where the quantised operator will be. torchao's `convert_pt2e` asks every observer for
its conversion, and this is one to it.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.fake_quantize import FakeQuantizeBase

from mizzen.frontends.torch.operators.row import SIGNED_UNIT, UNIT
from mizzen.quantize.observers import Composite, replace_composite
from mizzen.quantize.recurrence import GRIDS, Grid, Kind, gru_steps, lstm_steps, rnn_steps

STEPS = {Kind.LSTM: lstm_steps, Kind.GRU: gru_steps, Kind.RNN: rnn_steps}


class RecurrentSteps(Composite):
    """The steps of one layer in one direction.

    Call it with the operands of the operator: projection, first states, weight, and the GRU's bias
    or the RNN's nonlinearity. It gives a tuple: the sequence, and the LSTM's last cell state.
    """

    def __init__(self, kind: Kind, reverse: bool) -> None:
        super().__init__()
        self.kind = kind
        self.reverse = reverse

    @property
    def states(self) -> int:
        """The number of states that the recurrence carries."""
        return 2 if self.kind is Kind.LSTM else 1

    def wire(self, node: Node, observers: dict[Any, Any]) -> None:
        """Take over the observers of the projection and of the states."""
        names = ("gates", "hidden", "cell")[: 1 + self.states]
        for name, operand in zip(names, node.args, strict=False):
            self.observe(name, observers[(operand, node)])

    def run(self, *operands: Any) -> tuple[Tensor, ...]:
        """Run the recurrence in floating point; observers see every step."""
        training = any(isinstance(watch, FakeQuantizeBase) for watch in self.observers.values())
        if training:
            return self._steps(operands, self._rounded)
        seen: dict[str, list[Tensor]] = {}

        def at(name: str, value: Tensor) -> Tensor:
            seen.setdefault(name, []).append(value)
            return value

        results = self._steps(operands, at)
        for name, values in seen.items():
            # The sequence itself is observed outside.
            if name in self.observers and name != "hidden":
                self.observers[name](torch.cat([value.flatten() for value in values]))
        return results

    def _steps(self, operands: tuple[Any, ...], at: Any) -> tuple[Tensor, ...]:
        steps: Any = STEPS[self.kind]
        results = steps(*operands, self.reverse, at)
        return results if self.kind is Kind.LSTM else (results,)

    def _rounded(self, name: str, value: Tensor) -> Tensor:
        if name in self.observers:
            return self.observers[name](value)
        if name == "narrow" and "cell" not in self.observers:
            return value
        grid = self._grid(name)
        high = 2 ** (grid.bits - 1) - 1
        low = -high - 1
        return torch.fake_quantize_per_tensor_affine(value, grid.scale, grid.zero_point, low, high)

    def _grid(self, name: str) -> Grid:
        """Return the grid of that name, from what was observed or is known."""
        bits = self._bits("gates")
        match name:
            case "sigmoid":
                return Grid(2.0**-15, 0, 16) if bits == 16 else Grid(UNIT.scale, UNIT.zero_point, 8)
            case "tanh":
                return Grid(2.0**-15 if bits == 16 else SIGNED_UNIT.scale, 0, bits)
            case "narrow":
                scale = self._grid("cell").scale
                return Grid(scale * 2.0 ** (self._bits("cell") - bits), 0, bits)
            case _:
                scale, zero_point = cast(Any, self.observers[name]).calculate_qparams()
                return Grid(float(scale), int(zero_point), self._bits(name))

    def _bits(self, name: str) -> int:
        return torch.iinfo(cast(Any, self.observers[name]).dtype).bits

    def convert(self, model: GraphModule, node: Node) -> None:
        """Replace the node of this module by the quantised operator. Called by torchao."""
        grids = [self._grid(name) for name in GRIDS[self.kind]]
        operator = getattr(torch.ops.mizzen, f"{self.kind.value}_steps_quantized").default
        arguments = (
            *node.args,
            self.reverse,
            [grid.scale for grid in grids],
            [grid.zero_point for grid in grids],
            [grid.bits for grid in grids],
        )
        with model.graph.inserting_before(node):
            steps = model.graph.call_function(operator, arguments)
        if self.kind is not Kind.LSTM:
            replace_composite(model, node, steps)
            return
        steps.meta |= node.meta
        node.replace_all_uses_with(steps)
        model.graph.erase_node(node)
