"""Which configuration holds for a node: by name of module, by type, or for all."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch.fx import Node

from mizzen.quantize.configuration import QuantizationConfig
from mizzen.quantize.nodes import module_stack


@dataclass
class Selection:
    """What the user set. A name goes before a type, a type before the global configuration.

    Among nested modules the innermost that something was set for decides. None keeps a module in
    floating point.
    """

    everywhere: QuantizationConfig | None = None
    boundary: QuantizationConfig | None = None
    names: dict[str, QuantizationConfig | None] = field(
        default_factory=dict[str, QuantizationConfig | None]
    )
    types: dict[str, QuantizationConfig | None] = field(
        default_factory=dict[str, QuantizationConfig | None]
    )

    def configuration(self, node: Node) -> QuantizationConfig | None:
        """Return the node's configuration, None where it stays in floating point."""
        stack = module_stack(node)
        for path, _ in reversed(stack):
            if path in self.names:
                return self.names[path]
        for _, kind in reversed(stack):
            if kind in self.types:
                return self.types[kind]
        return self.everywhere

    def reason(self, node: Node) -> str:
        """Say why `configuration` gave None."""
        stack = module_stack(node)
        for path, _ in reversed(stack):
            if path in self.names:
                return f'set_module_name("{path}", None) keeps it in floating point'
        for _, kind in reversed(stack):
            if kind in self.types:
                name = kind.rpartition(".")[2]
                return f"set_module_type({name}, None) keeps it in floating point"
        return "no configuration was set for it: see set_global"

    @property
    def configurations(self) -> list[QuantizationConfig]:
        """Return every configuration that was set."""
        found = [self.everywhere, self.boundary, *self.names.values(), *self.types.values()]
        return [config for config in found if config is not None]
