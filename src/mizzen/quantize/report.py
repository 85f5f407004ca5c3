"""What stays in floating point, and why."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import cast

import torch
from torch.fx import GraphModule, Node

from mizzen.diagnostics import Diagnostic, Origin, Severity, fail
from mizzen.quantize.annotation import ANNOTATION, gives_float
from mizzen.quantize.composite import StateReader
from mizzen.quantize.configuration import Selection
from mizzen.quantize.nodes import operator_name, origin_of, role_of

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
    found: list[FloatNode] = []
    for node in cast("list[Node]", list(module.graph.nodes)):
        if node.op not in ("call_function", "call_module") or ANNOTATION in node.meta:
            continue
        if not _computes(module, node):
            continue
        name = operator_name(node) or str(node.target)
        found.append(FloatNode(origin_of(node), name, _reason(node, name, selection)))
    return found


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
    return "its operands or results are not tensors of floating-point numbers"


def check_types(module: GraphModule) -> None:
    """Raise E874 unless a program computes with 32-bit floating-point numbers."""
    nodes = cast("list[Node]", list(module.graph.nodes))
    wrong = [node for node in nodes if _type_of(node) in (*WIDE, *NARROW)]
    if wrong:
        # Inputs and weights have no line in the user's program; what computes with them has.
        node = next((row for row in wrong if row.op == "call_function"), wrong[0])
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


def check_annotation(module: GraphModule) -> None:
    """Raise E876 where a program has nothing to quantise."""
    if not any(ANNOTATION in node.meta for node in module.graph.nodes):
        raise fail(
            "E876",
            "a quantizer must have something to quantize, and no operator was selected",
            help="call set_global(get_symmetric_quantization_config()), or set_module_type",
        )
