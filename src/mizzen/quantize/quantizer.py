"""The quantiser that torchao's PT2E flow is given for an Ethos-U.

It takes a program apart, says which values become integers, and reports what stays in floating
point, and why.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import Quantizer

from mizzen.diagnostics import Diagnostic, Origin, Severity, fail
from mizzen.frontends.torch.operators import Role, row_of
from mizzen.frontends.torch.operators.effects import only_asserts
from mizzen.quantize.annotation import (
    ANNOTATION,
    Annotator,
    gives_float,
    has_computed_weight,
)
from mizzen.quantize.configuration import QuantizationConfig, Selection
from mizzen.quantize.decompose import decompose
from mizzen.quantize.decompose.regions import inline_regions
from mizzen.quantize.hiding import MaskObserver
from mizzen.quantize.nodes import HIDES, operator_name, origin_of, role_of, row_name
from mizzen.quantize.observers import (
    Adjust,
    StateReader,
    composite_of,
    of_few_bits,
    with_whole_one,
)
from mizzen.quantize.selecting import NamedNodes, NodeFinder, NodesOf, leave, select
from mizzen.targets.families import family_for

WIDE = (torch.float64, torch.complex64, torch.complex128)
NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class FloatNode:
    """A computation that is not quantised."""

    origin: Origin
    operator: str
    """ATen's name, or what the program calls."""
    reason: str

    def diagnostic(self) -> Diagnostic:
        """Return the same as a warning."""
        message = f"{self.operator} stays in floating point: {self.reason}"
        return Diagnostic("W875", message, Severity.WARNING, self.origin)


def float_nodes(module: GraphModule, selection: Selection) -> list[FloatNode]:
    """Return every computation in an annotated program that has no annotation."""
    unannotated: list[FloatNode] = []
    for node in cast("list[Node]", list(module.graph.nodes)):
        if node.op not in ("call_function", "call_module") or ANNOTATION in node.meta:
            continue
        if not _computes(module, node):
            continue
        name = operator_name(node) or str(node.target)
        unannotated.append(FloatNode(origin_of(node), name, _reason(node, name, selection)))
    return unannotated


def _computes(module: GraphModule, node: Node) -> bool:
    if node.op == "call_module" and isinstance(module.get_submodule(str(node.target)), StateReader):
        return False
    if node.target is operator.getitem or str(node.target) == "aten.copy_.default":
        return False  # these only name a result, or write it to state
    operands = any(gives_float(operand) for operand in node.all_input_nodes)
    return operands and (gives_float(node) or operator_name(node) != "")


def _reason(node: Node, name: str, selection: Selection) -> str:
    if selection.configuration(node) is None:
        return selection.reason(node)
    if role_of(node) is None:
        return f"{name} has no integer form"
    if has_computed_weight(node):
        return "its weight is computed, and only a constant has a scale for each channel"
    return "its operands or results are not tensors of floating-point numbers"


def check_types(module: GraphModule) -> None:
    """Raise E874 unless a program computes with 32-bit floating-point numbers."""
    nodes = cast("list[Node]", list(module.graph.nodes))
    wrong = [node for node in nodes if _type_of(node) in (*WIDE, *NARROW)]
    if wrong:
        # Inputs and weights have no line in the user's program; what computes with them has.
        node = next((each for each in wrong if each.op == "call_function"), wrong[0])
        kind = _type_of(node)
        raise fail(
            "E874",
            "a network must compute in float32 before it is quantized, "
            f"and {str(kind).removeprefix('torch.')} came",
            origin=origin_of(node),
            help=COMPLEX if kind is not None and kind.is_complex else FLOAT,
        )


def _type_of(node: Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


FLOAT = "call model.float() on the module, and export it again with float32 inputs"

COMPLEX = "no NPU has complex numbers: keep the transform out of the model, or write it as products"


def check_annotation(module: GraphModule, selection: Selection) -> None:
    """Raise E876 where nothing was selected.

    A program of integers and booleans alone has nothing to quantise under `set_global`, and goes on
    as it is.
    """
    annotated = any(ANNOTATION in node.meta for node in module.graph.nodes)
    if not annotated and selection.everywhere is None:
        raise fail(
            "E876",
            "a quantizer must have something to quantize, and no operator was selected",
            help="call set_global(get_symmetric_quantization_config()), or set_module_type",
        )


class EthosUQuantizer(Quantizer):
    """Says how a network is quantised so that all of it can run on an NPU.

    To be given to torchao's `prepare_pt2e` or `prepare_qat_pt2e`. `compile_spec` is the
    accelerator's name, ``ethos-u55-128``, or an object that has it as `target`, such as a compile
    specification. `use_composable_quantizer` is ExecuTorch's: quantizers compose either way here.
    Raises E210 for an accelerator that there is not, and E878 for integers that it has not.
    """

    def __init__(self, compile_spec: Any, use_composable_quantizer: bool = True) -> None:
        super().__init__()
        named = isinstance(compile_spec, str)
        self.target: str = compile_spec if named else str(compile_spec.target)
        self.compile_spec = compile_spec
        self.use_composable_quantizer = use_composable_quantizer
        self._family = family_for(self.target)
        self._selection = Selection()
        self._others: list[Quantizer] = []
        self._report: list[FloatNode] = []

    def set_global(self, quantization_config: QuantizationConfig | None) -> EthosUQuantizer:
        """Set the configuration of everything that has none of its own."""
        self._selection.everywhere = self._taken(quantization_config)
        return self

    def set_io(self, quantization_config: QuantizationConfig | None) -> EthosUQuantizer:
        """Set the configuration of the network's inputs and outputs."""
        self._selection.boundary = self._taken(quantization_config)
        return self

    def set_module_type(
        self,
        module_type: type[torch.nn.Module] | str,
        quantization_config: QuantizationConfig | None,
    ) -> EthosUQuantizer:
        """Set the configuration of all modules of a type; None keeps them in floating point."""
        if isinstance(module_type, type):
            module_type = f"{module_type.__module__}.{module_type.__qualname__}"
        self._selection.set_type(module_type, self._taken(quantization_config))
        return self

    def set_module_name(
        self, module_name: str, quantization_config: QuantizationConfig | None
    ) -> EthosUQuantizer:
        """Set the configuration of the module at a path; None keeps it in floating point.

        `prepare_pt2e` raises E881 if the model has no such module.
        """
        self._selection.set_name(module_name, self._taken(quantization_config))
        return self

    def set_node_finder(
        self, quantization_config: QuantizationConfig | None, node_finder: NodeFinder
    ) -> EthosUQuantizer:
        """Set the configuration of the nodes that a finder finds in the exported program."""
        self._selection.set_found(node_finder, self._taken(quantization_config))
        return self

    def set_node_target(
        self, node_target: Any, quantization_config: QuantizationConfig | None
    ) -> EthosUQuantizer:
        """Set the configuration of all calls of an operator, or of a list of operators.

        An operator is an overload, ``torch.ops.aten.relu.default``.
        """
        targets = (node_target,) if hasattr(node_target, "_schema") else tuple(node_target)
        return self.set_node_finder(quantization_config, NodesOf(targets))

    def set_node_name(
        self, node_name: str | Sequence[str], quantization_config: QuantizationConfig | None
    ) -> EthosUQuantizer:
        """Set the configuration of the node of a name, or of several.

        `prepare_pt2e` raises E881 if no node of the exported program has it.
        """
        names = (node_name,) if isinstance(node_name, str) else tuple(node_name)
        return self.set_node_finder(quantization_config, NamedNodes(names))

    def add_quantizer(self, quantizer: Quantizer) -> EthosUQuantizer:
        """Let another quantizer annotate first; what it annotates is left as it says."""
        self._others.append(quantizer)
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
        for other in self._others:
            model = other.transform_for_annotation(model)
        inline_regions(model)
        remove_guards(model)
        check_types(model)
        select(model, self._selection)
        is_qat = any(config.is_qat for config in self._selection.configurations)
        decompose(model, self._quantized, is_qat=is_qat, is_wide=self._wide)
        return model

    def _quantized(self, node: Node) -> bool:
        return self._selection.configuration(node) is not None

    def _wide(self, node: Node) -> bool:
        config = self._selection.configuration(node)
        return config is not None and config.bits == 16

    def annotate(self, model: GraphModule) -> GraphModule:
        """Mark every value that becomes an integer with how its range is found."""
        for other in self._others:
            model = other.annotate(model)
        leave((node for node in model.graph.nodes if ANNOTATION in node.meta), self._selection)
        Annotator(model, self._selection).run()
        return model

    def validate(self, model: GraphModule) -> None:
        """Refuse programs that nothing was selected in. `report` lists what stays in float."""
        check_annotation(model, self._selection)
        self._report = float_nodes(model, self._selection)

    def report(self) -> list[FloatNode]:
        """Return every computation that stays in floating point, after `prepare_pt2e`."""
        return list(self._report)

    def prepare_obs_or_fq_callback(
        self, model: GraphModule, edge_or_node_to_obs_or_fq: dict[Any, Any]
    ) -> None:
        """Tell every observer where its tensor is, and what scale its readers need."""
        for place, observer in edge_or_node_to_obs_or_fq.items():
            if observer is None:
                continue
            node: Node = place if isinstance(place, Node) else _said_of(*place)
            if getattr(observer, "origin", None) is None:
                observer.origin = origin_of(node)
            if (place if isinstance(place, Node) else place[0]).op in ("placeholder", "get_attr"):
                observer.is_computed = False
            adjust = None if isinstance(place, Node) else adjustment(place[1])
            if adjust is not None and getattr(observer, "adjust", None) is not of_few_bits:
                observer.adjust = adjust
        wire_composites(model, edge_or_node_to_obs_or_fq)
        wire_masks(model, edge_or_node_to_obs_or_fq)


def adjustment(reader: Node) -> Adjust | None:
    """Return the adjustment that the scale of a node's operands must have."""
    entry = row_of(reader)
    if entry is not None and entry.ends_at_one:
        return with_whole_one
    return of_few_bits if role_of(reader) is Role.DIVIDED else None


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


def wire_masks(model: GraphModule, observers: dict[Any, Any]) -> None:
    """Let masks that are inputs know the observers of the scores that they hide."""
    for node in cast("list[Node]", list(model.graph.nodes)):
        if HIDES in node.meta and row_name(node) == "add":
            scores, mask = (observers.get((operand, node)) for operand in node.args)
            if isinstance(mask, MaskObserver) and scores is not None:
                mask.scores.append(scores)


def remove_guards(model: GraphModule) -> None:
    """Drop what checks shapes and types of tensors: `torch.export` repeats it for the result."""
    for node in list(model.graph.nodes):
        guards = node.op == "call_module" and node.target == "_guards_fn"
        if guards or only_asserts(node):
            model.graph.erase_node(node)
    model.recompile()
