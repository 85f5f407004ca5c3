"""Graphs that PyTorch captures: what their inputs are, and modules that are right for one call.

Inputs are tensors of the caller's, parameters and buffers of the model, and numbers, which PyTorch
gives as such or as tensors that the graph reads with ``item()``.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.frontends.torch.program import functional, mapped
from mizzen.frontends.torch.training import in_training

if TYPE_CHECKING:
    import torch
    from torch.fx import GraphModule, Node

NAMES = ("._parameters[", "._buffers[")
"""What PyTorch writes, in the place that a value comes from, before a name in a module."""

TRAINING_PLACES = {"batch_norm": 5, "dropout": 2, "feature_dropout": 2, "alpha_dropout": 2}
"""Where functions say whether they are of training."""


class Kind(Enum):
    """What an input of a captured graph is."""

    GIVEN = auto()
    HELD = auto()
    NUMBER = auto()


def kinds_of(graph_module: GraphModule, example: Sequence[Any]) -> tuple[Kind, ...]:
    """Return the kind of each input of a graph."""
    places = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    return tuple(_kind(node, value) for node, value in zip(places, example, strict=True))


def _kind(node: Node, value: Any) -> Kind:
    import torch

    captured: Any = node.meta.get("grapharg")
    if not isinstance(value, torch.Tensor) or getattr(captured, "pass_arg_as_tensor", False):
        return Kind.NUMBER
    place: Any = getattr(getattr(captured, "source", None), "name", "")
    text = str(place() if callable(place) else place)
    if isinstance(value, torch.nn.Parameter) or any(name in text for name in NAMES):
        return Kind.HELD
    return Kind.GIVEN


def require_inference(graph_module: GraphModule) -> None:
    """Raise E877 for a graph of a model that is in training mode."""
    for node in graph_module.graph.nodes:
        place = TRAINING_PLACES.get(getattr(node.target, "__name__", ""))
        if place is None:
            continue
        training = node.args[place] if len(node.args) > place else node.kwargs.get("training")
        if training is None:
            training = _is_training_unless_said(node.target)
        if training is True:
            raise in_training()


def _is_training_unless_said(function: Any) -> bool:
    """Whether a function trains where its call does not say, as `functional.dropout` does."""
    try:
        return inspect.signature(function).parameters["training"].default is True
    except (TypeError, ValueError, KeyError):  # a builtin, which must be given it
        return False


def with_numbers(graph_module: GraphModule, numbers: dict[int, float]) -> GraphModule:
    """Return a graph with numbers in the place of the inputs at some indices, which stay unused."""
    import torch

    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    result = graph.graph_copy(graph_module.graph, copies)
    graph.output(result)
    places = [node for node in graph.nodes if node.op == "placeholder"]
    for index, number in numbers.items():
        for user in list(places[index].users):
            if user.op == "call_method" and user.target == "item":
                _replace(user, number)
        _replace_uses(places[index], number)
    rebuilt = torch.fx.GraphModule(graph_module, graph)
    rebuilt.recompile()
    return rebuilt


def _replace(node: Node, number: float) -> None:
    _replace_uses(node, number)
    node.graph.erase_node(node)


def _replace_uses(node: Node, number: float) -> None:
    def kept(source: Any) -> Any:
        return number if source is node else source

    for user in list(node.users):
        user.args, user.kwargs = mapped((user.args, user.kwargs), kept)


@dataclass(frozen=True, eq=False)
class Binding:
    """What becomes of a captured graph's inputs and results in a module.

    held      constants, by the index of the input
    taken     indices of the inputs that stay inputs, in order
    changed   indices among them of those that the graph changes: given after the results
    tensors   which of the graph's results are tensors
    """

    graph_module: GraphModule
    held: dict[int, torch.Tensor]
    taken: tuple[int, ...]
    changed: tuple[int, ...]
    tensors: tuple[int, ...]

    def module(self) -> torch.nn.Module:
        """Return a module that gives the results that are tensors, then what was changed."""
        import torch

        count = len([node for node in self.graph_module.graph.nodes if node.op == "placeholder"])

        class Bound(torch.nn.Module):
            def __init__(self, binding: Binding) -> None:
                super().__init__()
                self.graph_module = binding.graph_module
                for index, value in binding.held.items():
                    _hold(self, f"held_{index}", value)
                self.binding = binding

            def forward(self, *inputs: Any) -> tuple[Any, ...]:
                taken, changed = self.binding.taken, self.binding.changed
                arguments: list[Any] = [getattr(self, f"held_{i}", 0) for i in range(count)]
                for index, value in zip(taken, inputs, strict=True):
                    arguments[index] = value.clone() if index in changed else value
                results = self.graph_module(*arguments)
                after = [arguments[index] for index in changed]
                return (*(results[index] for index in self.binding.tensors), *after)

        return Bound(self).eval()


def _hold(module: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    import torch

    copied = value.detach().clone()
    if isinstance(value, torch.nn.Parameter):
        module.register_parameter(name, torch.nn.Parameter(copied, requires_grad=False))
    else:
        module.register_buffer(name, copied)


def changed_inputs(binding: Binding, inputs: tuple[torch.Tensor, ...]) -> tuple[int, ...]:
    """Return the indices of the graph's inputs that it changes in place. E163 as `export`."""
    signature = functional(export(binding.module(), Call(inputs), "model")).graph_signature
    buffers = {
        int(name.rpartition("_")[2])
        for name in signature.buffers_to_mutate.values()
        if name.startswith("held_")
    }
    places = {name: binding.taken[place] for place, name in enumerate(signature.user_inputs)}
    given = {places[name] for name in signature.user_inputs_to_mutate.values()}
    return tuple(sorted(buffers | given))
