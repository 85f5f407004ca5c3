"""Execute an exported PyTorch program node by node, and let every result be seen, or exchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mizzen.artifact.interface import Array
from mizzen.frontends.torch.program import Role, TorchProgram, mapped, tensor_of, without_gradient

Exchange = Callable[[Any, Any], Any]
"""Is told a node and its result, and returns what the nodes after it take."""


class Interpreter:
    """A program and its state, from the initial one on."""

    def __init__(self, program: TorchProgram) -> None:
        self.program = program
        roles = program.roles
        self._inputs = [node for node in roles if roles[node] is Role.INPUT]
        self._held = {
            node: program.tensor(node) for node, role in roles.items() if role is Role.CONSTANT
        }
        self._state = {state.read: program.tensor(state.read).clone() for state in program.states}

    def infer(self, inputs: Sequence[Array], exchange: Exchange) -> list[Array]:
        """Infer once, of arrays `[*shape]`, and return the outputs in order."""
        values = self.taken(inputs)
        for node in self.program.nodes:
            if node.op == "call_function":
                values[node] = exchange(node, self.result(node, values))
        for state in self.program.states:
            self._state[state.read] = values[state.write].detach().clone()
        return [values[node].detach().cpu().numpy() for node in self.program.outputs]

    def taken(self, inputs: Sequence[Array]) -> dict[Any, Any]:
        """Return the program's inputs by their nodes: arrays `[*shape]`, parameters, state."""
        given = zip(self._inputs, map(tensor_of, inputs), strict=True)
        return {**self._held, **self._state, **dict(given)}

    def result(self, node: Any, values: Mapping[Any, Any]) -> Any:
        """Return a node's result for the results of those that it takes."""
        arguments, named = (
            mapped(part, lambda source: values[source]) for part in (node.args, node.kwargs)
        )
        return without_gradient(node.target, *arguments, **named)
