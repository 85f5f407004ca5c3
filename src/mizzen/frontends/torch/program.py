"""An exported PyTorch program: its nodes, its parameters as arrays, its state.

Between PyTorch's tensors and NumPy's arrays; PyTorch's types end here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin, fail, source_line
from mizzen.frontends.torch.names import input_names, output_names
from mizzen.frontends.torch.operators.effects import only_asserts, shared_writes
from mizzen.graph import DType, TensorType

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Array = npt.NDArray[Any]


def tensor_of(array: Array) -> Any:
    """Return an array as a tensor that shares its memory where it can."""
    import torch

    torch_: Any = torch
    return torch_.from_numpy(np.ascontiguousarray(array))


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of PyTorch's, made up ones too."""
    import torch

    return isinstance(value, torch.Tensor)


def mapped(arguments: Any, function: Callable[[Any], Any]) -> Any:
    """Replace the nodes among arguments, however deep in lists."""
    import torch.fx

    fx: Any = torch.fx
    return fx.node.map_arg(arguments, function)


def without_gradient(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function of PyTorch's for its result only."""
    import torch

    with torch.no_grad():
        return function(*arguments, **named)


def results_of(node: Any) -> tuple[Any, ...]:
    """Return the results of a node as export knows them: one, or those of a tuple."""
    value: Any = node.meta.get("val")
    return tuple(value) if type(value) in (tuple, list) else (value,)


def zeros_like(made_up: Any) -> Any:
    """Return zeros of the shape and type of a tensor that export made up."""
    import torch

    torch_: Any = torch
    return torch_.zeros(tuple(made_up.shape), dtype=made_up.dtype)


def operator_of(name: str) -> Any:
    """Return ATen's operator of a name with overload, ``aten.relu.default``."""
    import torch

    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)


def is_unquantized(exported: ExportedProgram) -> bool:
    """Whether a program computes with floating-point numbers and rounds none of them."""
    nodes = [node for node in exported.graph.nodes if node.op == "call_function"]
    return not any("quantize" in str(node.target) for node in nodes) and any(
        is_tensor(value) and value.is_floating_point()
        for node in nodes
        for value in results_of(node)
    )


class Role(Enum):
    """What a placeholder of the program is."""

    INPUT = auto()
    CONSTANT = auto()
    STATE = auto()


@dataclass(frozen=True, slots=True)
class State:
    """A buffer that the program changes.

    name    its path in the model
    read    the placeholder that has its value before an inference
    write   the node that gives its value after the inference
    """

    name: str
    read: Any
    write: Any


@dataclass(frozen=True, eq=False)
class TorchProgram:
    """An exported program, read.

    nodes         FX nodes in order of execution
    roles         what each placeholder is
    outputs       the nodes that the program gives, in order
    output_names  what users call them
    input_names   what users call its inputs, by the names of their placeholders
    states        the buffers that it changes
    exported      the program itself, functional
    """

    name: str
    exported: ExportedProgram
    nodes: tuple[Any, ...]
    roles: dict[Any, Role]
    outputs: tuple[Any, ...]
    output_names: tuple[str, ...]
    input_names: dict[str, str]
    states: tuple[State, ...]

    def origin(self, node: Any) -> Origin:
        """Say where a node comes from in the user's model."""
        return origin_of(node, self.name, self.nodes.index(node))

    def tensor(self, node: Any) -> Any:
        """Return parameter, buffer or constant that a placeholder stands for, a torch tensor."""
        return placeholder_tensor(self.exported, node.name)

    def array(self, node: Any) -> Array:
        """Return `tensor` as an array that shares its memory."""
        return self.tensor(node).detach().cpu().numpy()


def taken_apart(
    exported: ExportedProgram, name: str, rewritten: Callable[[Any], Any] | None = None
) -> TorchProgram:
    """Take a program apart whose updates in place are explicit, or harmless.

    E160 for a dynamic shape, E161 for control flow, E162 for types that no NPU and no TOSA has.

    rewritten  what returns the program's graph in another form, with the same placeholders
    """
    graph = exported.graph if rewritten is None else rewritten(exported.graph)
    nodes = tuple(node for node in graph.nodes if not only_asserts(node))
    states = _states(exported, nodes)
    require_no_control_flow(nodes, name)
    _require_static(nodes, name)
    outputs = _outputs(exported, nodes)
    return TorchProgram(
        name=name,
        exported=exported,
        nodes=nodes,
        roles=_roles(exported, nodes, states),
        outputs=tuple(outputs.values()),
        output_names=output_names(exported, tuple(outputs)),
        input_names=input_names(exported),
        states=states,
    )


def placeholder_tensor(exported: ExportedProgram, name: str) -> Any:
    """Return the tensor of a lifted placeholder."""
    signature = exported.graph_signature
    for table in (signature.inputs_to_parameters, signature.inputs_to_buffers):
        if name in table:
            target = table[name]
            tensor = exported.state_dict.get(target)
            return exported.constants[target] if tensor is None else tensor
    return exported.constants[signature.inputs_to_lifted_tensor_constants[name]]


def tensor_type(value: Any, origin: Origin | None) -> TensorType:
    """Return the type of a node's value, from what export knows of it. E162 for unknown types."""
    name = str(value.dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise fail(
            "E162",
            f"a tensor must have a type that the NPU's toolchain knows, not {value.dtype}",
            origin=origin,
            help="convert the model: `model.float()` for float64, real parts for complex numbers",
        )
    return TensorType(tuple(int(extent) for extent in value.shape), DTYPES[name])


DTYPES = {
    "bool": DType.BOOL,
    "int8": DType.INT8,
    "int16": DType.INT16,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "uint8": DType.UINT8,
    "float16": DType.FP16,
    "bfloat16": DType.BF16,
    "float32": DType.FP32,
    "float64": DType.FP64,
}


def functional(exported: ExportedProgram) -> ExportedProgram:
    """Make updates in place explicit, if there are any."""
    mutates = any(
        node.op == "call_function"
        and getattr(getattr(node.target, "_schema", None), "is_mutable", False)
        for node in exported.graph.nodes
    )
    return _run_decompositions(exported) if mutates else exported


def explicit(exported: ExportedProgram) -> ExportedProgram:
    """Make updates in place explicit if one reaches another tensor through shared memory."""
    return _run_decompositions(exported) if shared_writes(exported.graph) else exported


def _run_decompositions(exported: ExportedProgram) -> ExportedProgram:
    return _decomposed(exported, {})


def in_core_operators(exported: ExportedProgram) -> ExportedProgram:
    """Take a program apart into core ATen operators, without updates in place."""
    return _decomposed(exported, None)


def _decomposed(exported: ExportedProgram, table: dict[Any, Any] | None) -> ExportedProgram:
    program: Any = exported
    with warnings.catch_warnings():
        # PyTorch warns of a class of its own, of which no user has an object.
        warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec")
        return program.run_decompositions(table)


def _roles(
    exported: ExportedProgram, nodes: tuple[Any, ...], states: tuple[State, ...]
) -> dict[Any, Role]:
    given = set(exported.graph_signature.user_inputs)
    kept = {state.read for state in states}
    roles: dict[Any, Role] = {}
    for node in nodes:
        if node.op != "placeholder":
            continue
        role = Role.INPUT if node.name in given else Role.CONSTANT
        roles[node] = Role.STATE if node in kept else role
    return roles


def _states(exported: ExportedProgram, nodes: tuple[Any, ...]) -> tuple[State, ...]:
    signature = exported.graph_signature
    by_name = {node.name: node for node in nodes}
    places = {buffer: name for name, buffer in signature.inputs_to_buffers.items()}
    return tuple(
        State(buffer, by_name[places[buffer]], by_name[written])
        for written, buffer in signature.buffers_to_mutate.items()
    )


def _outputs(exported: ExportedProgram, nodes: tuple[Any, ...]) -> dict[int, Any]:
    """Return the tensors that a program gives by their places among all that it gives: None and
    numbers, which never change, are left out.
    """
    signature = exported.graph_signature
    changed = len(signature.buffers_to_mutate) + len(signature.user_inputs_to_mutate)
    given = nodes[-1].args[0][changed:]
    return {place: item for place, item in enumerate(given) if hasattr(item, "meta")}


def require_no_control_flow(nodes: Iterable[Any], name: str) -> None:
    """Raise E161 for branches and loops that depend on data."""
    for index, node in enumerate(nodes):
        if node.op == "call_function" and kind_of(node) in CONTROL_FLOW:
            raise fail(
                "E161",
                f"control flow that depends on data, {kind_of(node)}, must not be in the program",
                origin=origin_of(node, name, index),
                help=BRANCHES if kind_of(node) == "cond" else LOOPS,
            )


def _require_static(nodes: tuple[Any, ...], name: str) -> None:
    for index, node in enumerate(nodes):
        for item in results_of(node):
            if is_tensor(item) and any(type(extent) is not int for extent in item.shape):
                raise fail(
                    "E160",
                    f"every shape must be static, and this one is {tuple(item.shape)}",
                    origin=origin_of(node, name, index),
                    help=FROM_DATA if _depends_on_data(item.shape) else DYNAMIC,
                )


BRANCHES = "compute both branches and choose with torch.where, or split the model there"

LOOPS = (
    "let Python loop a fixed number of times, which torch.export unrolls, or compile what is in "
    "the loop and loop around the artifact"
)

DYNAMIC = "export without `dynamic_shapes`; for several shapes, compile one artifact for each"

FROM_DATA = (
    "its size depends on the data: keep all elements and choose with torch.where, or split the "
    "model there"
)


def _depends_on_data(shape: Iterable[Any]) -> bool:
    """Whether an extent is a symbol that export made for a number in a tensor."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    symbols_of: Any = free_unbacked_symbols
    return any(type(extent) is not int and bool(symbols_of(extent)) for extent in shape)


CONTROL_FLOW = ("cond", "while_loop", "map", "scan")


GETITEM = "<built-in function getitem>"
"""The target, as it prints, of a node that takes one of another's several results."""


WITHOUT_RESULT = frozenset(
    {
        "aten._assert_tensor_metadata.default",
        "aten._assert_async.msg",
        "aten._assert_scalar.default",
        "aten.sym_constrain_range_for_size.default",
    }
)
"""Nodes that give nothing: they only check, at export, what a tensor is."""


def origin_of(node: Any, model: str | None, index: int) -> Origin:
    """Say where an FX node comes from: operator, module path, line of the user's file."""
    return Origin(
        model=model,
        operator=index,
        kind=kind_of(node),
        name=node.name,
        module=_module(node),
        source=source_line(node.meta.get("stack_trace") or ""),
    )


def kind_of(node: Any) -> str:
    """Return the operator's name in the user's words, ``aten.conv2d``."""
    target = node.target
    name = str((getattr(target, "_schema", None) and target._schema.name) or target)
    return name.replace("::", ".")


def _module(node: Any) -> str | None:
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    path, kind = list(stack.values())[-1]
    name = kind if isinstance(kind, str) else kind.__qualname__
    short = name.rpartition(".")[2]
    return f"{path} ({short})" if path else f"({short})"
