"""State: buffers that a program reads and writes, such as caches and recurrent states.

A program is called in calibration, and that changes its buffers. What ships is the state from
before: a reader keeps it, and puts it back when the program is converted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from mizzen.quantize.composite import Composite, replace_composite

torch_library: Any = torch.library
LIBRARY: Any = torch.library.Library("mizzen", "FRAGMENT")

# The tag keeps a state from being taken for a constant, when torchao folds constants.
LIBRARY.define("read_state(Tensor state) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
LIBRARY.impl("read_state", torch.clone, "CompositeExplicitAutograd")
torch_library.register_fake("mizzen::read_state", torch.empty_like, lib=LIBRARY)


class StateReader(Composite):
    """Reads a buffer that the program writes. It ships as ``mizzen::read_state(state)``."""

    initial: Tensor

    def __init__(self, initial: Tensor) -> None:
        super().__init__()
        self.register_buffer("initial", initial.detach().clone())

    def run(self, state: Tensor) -> tuple[Tensor]:
        """Return the state as it is now."""
        return (state.clone(),)

    def convert(self, model: GraphModule, node: Node) -> None:
        """Put the first state back, and read it with the operator from now on."""
        (buffer,) = node.all_input_nodes
        state: Any = model
        for name in str(buffer.target).split("."):
            state = getattr(state, name)
        with torch.no_grad():
            state.copy_(self.initial)
        with model.graph.inserting_before(node):
            result = model.graph.call_function(torch.ops.mizzen.read_state.default, (buffer,))
        replace_composite(model, node, result)
