"""The quantiser that torchao's PT2E flow is given for an Ethos-U."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import Quantizer

from mizzen.diagnostics import fail
from mizzen.quantize.annotation import Annotator
from mizzen.quantize.composite import composite_of
from mizzen.quantize.configuration import QuantizationConfig, Selection
from mizzen.quantize.decompose import decompose
from mizzen.quantize.nodes import origin_of
from mizzen.quantize.report import FloatNode, check_annotation, check_types, float_nodes
from mizzen.targets.families import family_for


class EthosUQuantizer(Quantizer):
    """Says how a network is quantised so that all of it can run on an NPU.

    To be given to torchao's `prepare_pt2e` or `prepare_qat_pt2e`. `target` is the accelerator's
    name, ``ethos-u55-128``, or an object that has it as `target`, such as a compile specification.
    Raises E210 for an accelerator that there is not, and E878 for integers that it has not.
    """

    def __init__(self, target: Any) -> None:
        super().__init__()
        self.target: str = target if isinstance(target, str) else str(target.target)
        self._family = family_for(self.target)
        self._selection = Selection()
        self._report: list[FloatNode] = []

    def set_global(self, config: QuantizationConfig | None) -> EthosUQuantizer:
        """Set the configuration of everything that has none of its own."""
        self._selection.everywhere = self._taken(config)
        return self

    def set_io(self, config: QuantizationConfig | None) -> EthosUQuantizer:
        """Set the configuration of the network's inputs and outputs."""
        self._selection.boundary = self._taken(config)
        return self

    def set_module_type(
        self, module_type: type[torch.nn.Module] | str, config: QuantizationConfig | None
    ) -> EthosUQuantizer:
        """Set the configuration of all modules of a type; None keeps them in floating point."""
        if isinstance(module_type, type):
            module_type = f"{module_type.__module__}.{module_type.__qualname__}"
        self._selection.types[module_type] = self._taken(config)
        return self

    def set_module_name(
        self, module_name: str, config: QuantizationConfig | None
    ) -> EthosUQuantizer:
        """Set the configuration of the module at a path; None keeps it in floating point."""
        self._selection.names[module_name] = self._taken(config)
        return self

    def _taken(self, config: QuantizationConfig | None) -> QuantizationConfig | None:
        """Return a configuration whose integers the target has. E878 for another."""
        known = self._family.activation_bits
        if config is not None and config.bits not in known:
            raise fail(
                "E878",
                f"activations for {self._family.name} must have "
                f"{' or '.join(map(str, known))} bits, and {config.bits} came",
                help="use get_symmetric_quantization_config(), or another accelerator",
            )
        return config

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Take compound operators apart where integers need ranges inside of them."""
        remove_guards(model)
        check_types(model)
        is_qat = any(config.is_qat for config in self._selection.configurations)
        decompose(model, self._quantized, is_qat=is_qat)
        return model

    def _quantized(self, node: Node) -> bool:
        return self._selection.configuration(node) is not None

    def annotate(self, model: GraphModule) -> GraphModule:
        """Mark every value that becomes an integer with how its range is found."""
        Annotator(model, self._selection).run()
        return model

    def validate(self, model: GraphModule) -> None:
        """Refuse programs that nothing was selected in. What stays in float is in `report`."""
        check_annotation(model)
        self._report = float_nodes(model, self._selection)

    def report(self) -> list[FloatNode]:
        """Return every computation that stays in floating point, after `prepare_pt2e`."""
        return list(self._report)

    def prepare_obs_or_fq_callback(
        self, model: GraphModule, edge_or_node_to_obs_or_fq: dict[Any, Any]
    ) -> None:
        """Tell every observer where its tensor is, for its messages."""
        for place, observer in edge_or_node_to_obs_or_fq.items():
            node: Node = place if isinstance(place, Node) else _said_of(*place)
            if observer is not None and getattr(observer, "origin", None) is None:
                observer.origin = origin_of(node)
        wire_composites(model, edge_or_node_to_obs_or_fq)


def _said_of(producer: Node, consumer: Node) -> Node:
    """Return the node of an edge that has a line in the user's program: a constant has none."""
    return consumer if producer.op == "get_attr" else producer


def wire_composites(model: GraphModule, observers: dict[Any, Any]) -> None:
    """Let composites know the observers of what goes into them and comes out."""
    for node in cast("list[Node]", list(model.graph.nodes)):
        composite = composite_of(model, node)
        if composite is not None:
            composite.origin = origin_of(node)
            composite.wire(node, observers)
            for observer in composite.observers.values():
                if getattr(observer, "origin", None) is None:
                    set_origin: Any = observer
                    set_origin.origin = composite.origin


def remove_guards(model: GraphModule) -> None:
    """Drop the call that checks the inputs' shapes: `torch.export` repeats it for the result."""
    for node in list(model.graph.nodes):
        if node.op == "call_module" and node.target == "_guards_fn":
            model.graph.erase_node(node)
    model.recompile()
