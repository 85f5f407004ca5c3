"""Modules in a prepared program that stand for several operators, and convert themselves.

torchao's `convert_pt2e` asks every observer in the program for its conversion. A composite is one
to it. Its result is always a tuple, even of one tensor: torchao looks through an observer for the
value that it observes, and would take a composite's operand for its result.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.observer import ObserverBase

from mizzen.diagnostics import Origin
from mizzen.quantize.observers import never_calibrated


class Composite(ObserverBase):
    """A part of a prepared program with observers of its own."""

    origin: Origin | None = None

    def __init__(self) -> None:
        base: Any = super()
        base.__init__(torch.float32)
        self.observers = torch.nn.ModuleDict()

    def observe(self, name: str, observer: torch.nn.Module) -> None:
        """Let `observer` see the values of that name."""
        self.observers[name] = observer

    def forward(self, *operands: Any) -> tuple[torch.Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - its operands, not x
        """Compute in floating point."""
        named: Any = self  # each composite has a `run` whose operands have names
        return named.run(*operands)

    def wire(self, node: Node, observers: dict[Any, Any]) -> None:
        """Take over the observers of values that are outside too, from torchao's map of them."""

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Refuse: a composite has no scale, or several."""
        raise never_calibrated(self.origin)

    def convert(self, model: GraphModule, node: Node) -> None:
        """Replace `node`, which calls this module. Called by torchao."""
        raise NotImplementedError


def composite_of(module: GraphModule, node: Node) -> Composite | None:
    """Return the composite that a node calls, None for other nodes."""
    if node.op != "call_module":
        return None
    found = module.get_submodule(str(node.target))
    return found if isinstance(found, Composite) else None


def replace_composite(model: GraphModule, node: Node, result: Node) -> None:
    """Let `result`, one tensor, take the place of a composite's tuple of one."""
    result.meta |= {key: copy.copy(value) for key, value in node.meta.items()}
    result.meta["val"] = node.meta["val"][0]
    for item in list(node.users):
        item.replace_all_uses_with(result)
        model.graph.erase_node(item)
    model.graph.erase_node(node)


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
