"""Take nodes one by one, in order, to a network of few forms whose every shape is known.

What a node is given is known when it is reached: the types of all inputs, and which are constant.
So functions and branches are put in their places, old forms made new, quantised operators taken
apart, constants computed and types of results inferred in one walk, and each error says its node.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.onnx.bodies import (
    MOST_NODES,
    Body,
    FunctionKey,
    constants_of,
    key_of,
    narrow_limits,
    node_of,
    opsets_of,
    require_depth,
)
from mizzen.frontends.onnx.dialects import MICROSOFT, plain, require_taken
from mizzen.frontends.onnx.draft import Draft, Subgraph, changed, has, made
from mizzen.frontends.onnx.external import Beside
from mizzen.frontends.onnx.folding import Folding
from mizzen.frontends.onnx.forms import modern
from mizzen.frontends.onnx.model import ONNX, Array, Node, TensorType
from mizzen.frontends.onnx.moving import MOVES
from mizzen.frontends.onnx.operands import require_operands
from mizzen.frontends.onnx.ordering import ordered, origin_of
from mizzen.frontends.onnx.parameters import require_parameters
from mizzen.frontends.onnx.schemas import Schemas, require_opset
from mizzen.frontends.onnx.wire import Message


class Normalising:
    """The walk; `nodes` are those taken so far, `same` names of one tensor under another."""

    def __init__(
        self,
        draft: Draft,
        beside: Beside,
        functions: Mapping[FunctionKey, Message],
        declared: Mapping[str, TensorType],
    ) -> None:
        self.draft = draft
        self.beside = beside
        self.functions = functions
        self.declared = declared
        self.nodes: list[Node] = []
        self.same: dict[str, str] = {}
        self.copies: dict[str, Node] = {}
        self.read: dict[str, Node] = {}
        """DequantizeLinear of constants, by their results."""
        self._schemas = Schemas(draft)
        self._folding = Folding(draft)
        self._quantized: dict[object, str] = {}
        self._taken = 0

    def body(self, body: Body, wanted: list[str]) -> None:
        """Take the nodes of a body that its wanted tensors need."""
        file = self.draft.file
        if len(body.messages) > MOST_NODES:
            raise self._too_many(MOST_NODES, body.messages[MOST_NODES])
        for place, message in ordered(body.messages, body.names, wanted, file):
            self._count(place, message)
            key = key_of(message, "op_type")
            node = node_of(message, place, body, self.draft, self.beside)
            if key in self.functions:
                self._call(node, message, self.functions[key], body)
            else:
                self._take(node, body)

    def _count(self, place: int, message: Message) -> None:
        self._taken += 1
        if self._taken > MOST_NODES:
            raise self._too_many(place, message)

    def _too_many(self, place: int, message: Message) -> MizzenError:
        return fail(
            "E192",
            f"a network must have at most {MOST_NODES:,} nodes, and has more",
            origin=origin_of(self.draft.file, place, message),
        )

    def resolved(self, name: str) -> str:
        """Follow a name to the tensor that it is another name of."""
        while name in self.same:
            name = self.same[name]
        return name

    def _take(self, node: Node, body: Body) -> None:
        node = changed(node, inputs=tuple(self.resolved(name) for name in node.inputs))
        self._require_known(node)
        if node.kind == "If" and node.domain == ONNX:
            self._branch(node, body)
            return
        require_taken(node, self.draft)
        if any(isinstance(value, Subgraph) for value in node.attributes.values()):
            raise self.draft.refused(node, "must have no graph within, and has one")
        # Numbers may be of any size: what overflows is infinite, as where the network runs.
        with np.errstate(all="ignore"):
            parts = [node]
            if node.domain == ONNX:
                self._schemas.check(node, body.opset)
                parts = modern(node, body.opset, self.draft)
            for part in parts:
                for piece in plain(part, self.draft):
                    self._settle(piece)

    def _require_known(self, node: Node) -> None:
        for name in node.inputs:
            if name and name not in self.draft.types:
                raise self.draft.wrong(node, f'must have tensors as inputs, and "{name}" is none')

    def _settle(self, node: Node) -> None:
        """Take a node of the newest form: drop, fold or keep it."""
        if node.domain != ONNX:
            self._keep(node, self._declared(node))
            return
        self._schemas.check(node, self.draft.opset)
        if self._is_gone(node):
            return
        if node.kind in ("QuantizeLinear", "DequantizeLinear"):
            node = require_parameters(node, self.draft)
        require_operands(node, self.draft)
        types = self._schemas.results(node)
        if not self._folded(node, types):
            self._keep(node, self._whole(node, types))

    def _is_gone(self, node: Node) -> bool:
        """Take what computes nothing: constants, and tensors under another name."""
        match node.kind:
            case "Constant":
                self._define(node, _constant(node, self.draft))
            case "Identity" if len(node.inputs) == 1 and len(node.outputs) == 1:
                self._rename(node)
            case "Dropout" if has(node, 0):
                self._require_inference(node)
                self._rename(node)
                if len(node.outputs) > 1 and node.outputs[1]:
                    kept = np.ones(self.draft.shape(node.inputs[0]), np.bool_)
                    self.draft.define(node.outputs[1], kept)
            case "Shape" if has(node, 0):
                start, end = (node.attributes.get(name) for name in ("start", "end"))
                shape = self.draft.shape(node.inputs[0])[slice(start, end)]
                self._define(node, np.array(shape, np.int64))
            case "Size" if has(node, 0):
                size = int(np.prod(self.draft.shape(node.inputs[0]), dtype=np.int64))
                self._define(node, np.array(size, np.int64))
            case _:
                return False
        return True

    def _define(self, node: Node, value: Array) -> None:
        if len(node.outputs) != 1 or not node.outputs[0]:
            raise self.draft.wrong(node, "must have one output, and has others")
        self.draft.define(node.outputs[0], value)

    def _require_inference(self, node: Node) -> None:
        training = self.draft.input_value(node, 2)
        if has(node, 2) and (training is None or bool(np.any(training))):
            rule = "must drop nothing, and drops elements as in training"
            raise self.draft.refused(node, rule, "export the network in its mode of evaluation")

    def _rename(self, node: Node) -> None:
        source, result = node.inputs[0], node.outputs[0]
        if not source:
            raise self.draft.wrong(node, "must have an input, and has none")
        self.same[result] = source
        self.copies[result] = node
        self.draft.types[result] = self.draft.types[source]
        if source in self.draft.constants:
            self.draft.constants[result] = self.draft.constants[source]
        if source in self.draft.narrow:
            self.draft.narrow[result] = self.draft.narrow[source]

    def _declared(self, node: Node) -> list[TensorType]:
        types = [self.declared.get(name) for name in node.outputs if name]
        if node.domain != MICROSOFT or any(type is None for type in types):
            raise self.draft.refused(
                node,
                f'must be an operator of ONNX, and is of "{node.domain}"',
                "export the network with ONNX's own operators",
            )
        return [type for type in types if type is not None]

    def _whole(self, node: Node, types: list[TensorType | None]) -> list[TensorType]:
        whole = [type for name, type in zip(node.outputs, types, strict=True) if name]
        if any(type is None for type in whole):
            raise self.draft.refused(
                node,
                "must make tensors of shapes that no input decides, and its depend on values",
                "make the shape constant when exporting the network",
            )
        return [type for type in whole if type is not None]

    def _keep(self, node: Node, types: list[TensorType]) -> None:
        same = self._quantized_before(node)
        if same is not None:
            self.same[node.outputs[0]] = same
        for name, type in zip((name for name in node.outputs if name), types, strict=True):
            self.draft.types[name] = type
            self.draft.known.add(name)
        if same is None:
            self.nodes.append(node)
            if node.kind == "DequantizeLinear" and node.inputs[0] in self.draft.constants:
                self.read[node.outputs[0]] = node

    def _quantized_before(self, node: Node) -> str | None:
        """Look for the same QuantizeLinear of a tensor, which writers repeat for each consumer."""
        if node.kind != "QuantizeLinear" or node.domain != ONNX:
            return None
        values = [self.draft.value(name) if name else None for name in node.inputs[1:]]
        key = (node.inputs[0], tuple(sorted(node.attributes.items())), *(
            name if value is None or value.size > 1 else (value.dtype, value.tobytes())
            for name, value in zip(node.inputs[1:], values, strict=True)
        ))  # fmt: skip
        before = self._quantized.setdefault(key, node.outputs[0])
        return None if before == node.outputs[0] else before

    def _folded(self, node: Node, types: list[TensorType | None]) -> bool:
        """Compute a node that depends on no input of the network; whether it was."""
        is_constant = all(
            not name or name in self.draft.constants or name in self.read for name in node.inputs
        )
        if not is_constant or node.kind == "DequantizeLinear" or not self._folding.knows(node):
            return False
        if any(name in self.read for name in node.inputs) and self._moved(node, types):
            return True
        inputs = [self._real(name) for name in node.inputs]
        results = self._folding.fold(node, inputs, types)
        if results is None:
            return False
        for name, result in zip(node.outputs, results, strict=True):
            if name:
                self.draft.define(name, result)
        return True

    def _real(self, name: str) -> Array | None:
        """Look up a constant, or compute one that is kept as integers."""
        if name in self.read and name not in self.draft.constants:
            node = self.read[name]
            inputs = [self.draft.value(part) if part else None for part in node.inputs]
            results = self._folding.fold(node, inputs, [self.draft.types[name]])
            return None if results is None else results[0]
        return self.draft.value(name) if name else None

    def _moved(self, node: Node, types: list[TensorType | None]) -> bool:
        """Move the integers of a quantised constant, not their numbers, if that says the same.

        Exporters transpose and reshape weights after their DequantizeLinear.
        """
        reader = self.read.get(node.inputs[0])
        type = types[0]
        if reader is None or node.kind not in MOVES or type is None:
            return False
        axis = _moved_axis(node, reader, type, self.draft)
        if axis is None:
            return False
        integers = self.draft.constants[reader.inputs[0]]
        inputs = [integers, *(self.draft.value(name) if name else None for name in node.inputs[1:])]
        results = self._folding.fold(node, inputs, [TensorType(integers.dtype, type.shape)])
        if results is None:
            return False
        moved = self.draft.constant(results[0], f"{node.outputs[0]}:quantized")
        kept = (moved, *reader.inputs[1:])
        self._keep(changed(reader, inputs=kept, outputs=node.outputs, axis=axis), [type])
        return True

    def _branch(self, node: Node, body: Body) -> None:
        """Put the branch of an `If` in its place whose condition is constant."""
        condition = self.draft.input_value(node, 0)
        if condition is None or condition.size != 1:
            raise self.draft.refused(
                node,
                "must have a condition that no input decides, and has another",
                "export the network for one of the two cases",
            )
        chosen = "then_branch" if bool(condition.reshape(())) else "else_branch"
        graph = node.attributes.get(chosen)
        if not isinstance(graph, Subgraph):
            raise self.draft.wrong(node, f'must have a graph "{chosen}", and has none')
        results = [entry.get("name", "") for entry in graph.message.get("output", ())]
        if len(results) != len(node.outputs):
            raise self.draft.wrong(node, "must have as many outputs as its branch, and has others")
        inner = Body(
            graph.message.get("node", []),
            ChainMap({}, graph.names),
            node.index,
            body.opsets,
            body.given,
            body.depth + 1,
            node.name,
        )
        require_depth(inner, self.draft.origin(node))
        self.define(constants_of(graph.message, self.beside, self.draft.file), inner)
        self.body(inner, results)
        self._bring_out(node, [inner.names.get(name, "") for name in results])

    def _call(self, node: Node, message: Message, function: Message, body: Body) -> None:
        """Put the nodes of a function in the place of its call."""
        given = {entry.get("name", ""): entry for entry in function.get("attribute_proto", ())}
        for entry in message.get("attribute", ()):
            outer = body.given.get(entry["ref_attr_name"]) if entry.get("ref_attr_name") else entry
            if outer is not None:
                given[entry.get("name", "")] = outer
        names = dict.fromkeys(function.get("input", ()), "")
        names |= dict(zip(names, (self.resolved(name) for name in node.inputs), strict=False))
        opsets = dict(body.opsets) | opsets_of(function.get("opset_import", []))
        inner = Body(function.get("node", []), names, node.index, opsets, given,
                     body.depth + 1, node.name)  # fmt: skip
        require_depth(inner, self.draft.origin(node))
        require_opset(inner.opset, self.draft.file, self.draft.origin(node))
        results = list(function.get("output", ()))
        self.body(inner, results)
        self._bring_out(node, [inner.names.get(name, "") for name in results])

    def _bring_out(self, node: Node, results: list[str]) -> None:
        """Give what a body made the names that it has outside."""
        for name, inner in zip(node.outputs, results, strict=False):
            source = self.resolved(inner)
            if name and source not in self.draft.types:
                raise self.draft.wrong(node, f'must have a body that makes "{name}", and has none')
            if name:
                self._rename(made(node, "Identity", (source,), (name,)))

    def define(self, constants: dict[str, tuple[Array, int]], body: Body) -> None:
        """Take the initializers of a body."""
        for name, (value, number) in constants.items():
            known = name if body.index is None else self.draft.fresh(f"{body.prefix}/{name}")
            body.names[name] = known
            self.draft.define(known, value)
            limits = narrow_limits(number)
            if limits is not None:
                self.draft.narrow[known] = limits


def _constant(node: Node, draft: Draft) -> Array:
    given = [name for name in _CONSTANT_TYPES if name in node.attributes]
    if len(given) != 1 or len(node.attributes) != 1:
        raise draft.wrong(node, "must have one value that is of numbers, and has others")
    value: Any = node.attributes[given[0]]
    dtype = _CONSTANT_TYPES[given[0]]
    if dtype is None:
        if not isinstance(value, np.ndarray):
            raise draft.wrong(node, "must have a tensor as its value, and has something else")
        return cast("Array", value)
    try:
        return np.array(value, dtype)
    except (ValueError, TypeError, OverflowError):
        raise draft.wrong(node, "must have numbers as its value, and has others") from None


_CONSTANT_TYPES: Mapping[str, type[np.float32 | np.int64] | None] = {
    "value": None, "sparse_value": None, "value_float": np.float32, "value_floats": np.float32,
    "value_int": np.int64, "value_ints": np.int64,
}  # fmt: skip


def _moved_axis(node: Node, reader: Node, moved: TensorType, draft: Draft) -> int | None:
    """Say along which axis scales lie once the elements are moved; None where they do not."""
    shape = draft.shape(reader.inputs[0])
    axis = reader.attributes.get("axis", 1)
    if draft.constants[reader.inputs[1]].size == 1:
        return axis
    axis = axis % len(shape) if shape else 0
    if node.kind == "Transpose":
        order = node.attributes.get("perm") or tuple(reversed(range(len(shape))))
        return order.index(axis) if axis in order else None
    before = prod(shape[:axis])
    places = [place for place, extent in enumerate(moved.shape) if extent == shape[axis]]
    return next((place for place in places if prod(moved.shape[:place]) == before), None)
