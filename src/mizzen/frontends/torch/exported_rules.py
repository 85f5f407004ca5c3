"""What the description of an exported program may say, so that PyTorch can read it safely.

PyTorch makes Python code of names, evaluates sizes as expressions, imports what a tree of arguments
names and looks up operators by attribute. So each of these has a rule here, and what no rule lets
through is not a program: `cleaned` returns a description of checked parts only.

Ref: PyTorch 2.13, torch/_export/serde/schema.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Any, cast

Json = Any
"""What a JSON document holds: dictionaries, lists, texts, numbers, None."""

MOST_TENSOR_BYTES = 1 << 30
"""Most bytes of one tensor: no network for these NPUs comes near."""
WIDEST_BYTES = 16
ELEMENT_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 12: 1, 13: 2}
"""Bytes of an element by the schema's `ScalarType`; of others `WIDEST_BYTES`."""

NAMESPACES = ("aten", "prims", "quantized_decomposed", "mizzen")
"""Operators of these compute on tensors. Others may do anything to the process."""
NOT_TENSORS = frozenset(
    {"Delete", "_print", "from_file", "manual_seed", "save", "seed", "set", "set_", "warn"}
)
"""Operators among them that reach files, the terminal or another tensor's memory."""
HIGHER_ORDER = ("cond", "map_impl", "scan", "while_loop", "wrap_with_set_grad_enabled")
FUNCTIONS = frozenset(
    f"_operator.{name}"
    for name in ("add", "eq", "floordiv", "ge", "getitem", "gt", "le", "lt", "mod", "mul", "ne")
) | {"_operator.neg", "_operator.sub", "_operator.truediv", "torch.sym_max", "torch.sym_min",
     "torch.sym_not"}  # fmt: skip

STRIDED = 7
"""The layout, by the schema's `Layout`, that has all elements."""

TREES = ("builtins.dict", "builtins.list", "builtins.tuple", "collections.OrderedDict")
KEPT_METADATA = ("nn_module_stack", "stack_trace")

_OPERATOR = re.compile(
    rf"torch\.ops\.(?:{'|'.join(NAMESPACES)})\.([A-Za-z_]\w*)\.[A-Za-z_]\w*", re.A
)
_HIGHER_ORDER = re.compile(rf"torch\.ops\.higher_order\.(?:{'|'.join(HIGHER_ORDER)})")
_SYMBOL = re.compile(r"[su]\d{1,4}", re.A)
_PATH = re.compile(r"[\w.\-]{0,1000}", re.A)
_CONTROL = re.compile(r"[^\n\x20-\x7e\xa0-\uffff]")


class UnsafeProgramError(Exception):
    """Says what of a program would make PyTorch execute more than tensors and operators."""


class DynamicShapeError(Exception):
    """Says which shape depends on what only a run knows."""


def cleaned(document: Json) -> Json:
    """Return a description of which every part is checked.

    Raises `UnsafeProgramError`, `DynamicShapeError` for sizes that are expressions, or whatever
    comes of a document that does not describe a program.
    """
    module = document["graph_module"]
    return {
        "graph_module": {
            "graph": _walk(module["graph"]),
            "signature": _walk(module["signature"]),
            "module_call_graph": [_call(entry) for entry in module["module_call_graph"]],
        },
        "opset_version": {
            _name(key): int(version) for key, version in document["opset_version"].items()
        },
        "range_constraints": {
            _symbol(key): {"min_val": bounds["min_val"], "max_val": bounds["max_val"]}
            for key, bounds in document["range_constraints"].items()
        },
        "schema_version": {key: int(document["schema_version"][key]) for key in ("major", "minor")},
        "verifiers": [_name(verifier) for verifier in document["verifiers"]],
        "torch_version": _matching(r"[\w.+<=\-]{1,50}", document["torch_version"]),
        "guards_code": [],
    }


def tensor_bytes(meta: Json) -> int:
    """Return the bytes of a tensor whose sizes are numbers. Raises as `cleaned`."""
    sizes = [_static(size) for size in meta["sizes"]]
    return math.prod(sizes) * ELEMENT_BYTES.get(meta["dtype"], WIDEST_BYTES)


def require_path(text: object) -> str:
    """Return the name of a parameter or buffer, dots between modules."""
    return _matching(_PATH.pattern, text)


def _walk(value: Json) -> Json:
    match value:
        case dict():
            return {key: _field(key, item) for key, item in cast("dict[str, Json]", value).items()}
        case list():
            return [_walk(item) for item in cast("list[Json]", value)]
        case _:
            return value


def _field(key: str, value: Json) -> Json:
    rule = RULES.get(key)
    if rule is not None:
        return rule(value)
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return _walk(value)
    raise UnsafeProgramError(f"{key} is {value!r}")


def _refused(value: Json) -> Json:
    if value:
        raise UnsafeProgramError("it has an object of a Python class, which only a pickle can hold")
    return value


def _trains(value: Json) -> Json:
    """A loss or a gradient is set where there is one, and left out where there is none."""
    raise UnsafeProgramError("it gives a loss or gradients, as a program does that trains")


def _has_effects(value: Json) -> Json:
    """A token is handed on by operators that must keep their order for what they do beside."""
    raise UnsafeProgramError("it has operators with effects, whose order a token keeps")


def layout(value: Json) -> Json:
    """Return the layout of a tensor, whose elements are all there."""
    if value not in (None, STRIDED):
        raise UnsafeProgramError(f"of a tensor of layout {value} only some elements are stored")
    return value


def _name(value: Json) -> Json:
    """A name becomes a variable of the code that PyTorch makes."""
    if value in (None, ""):
        return value
    if not (isinstance(value, str) and value.isascii() and value.isidentifier()):
        raise UnsafeProgramError(f"a name is {_short(value)}, which is no name of Python's")
    if iskeyword(value):
        raise UnsafeProgramError(f"a name is {_short(value)}, a keyword of Python's")
    return value


def _names(values: Json) -> Json:
    return None if values is None else [_name(value) for value in values]


def computes_on_tensors(operator: str) -> bool:
    """Whether an operator, by a name such as ``torch.ops.aten.add.Tensor``, does nothing else."""
    named = _OPERATOR.fullmatch(operator)
    return named is not None and named[1] not in NOT_TENSORS


def _target(value: Json) -> Json:
    if value in FUNCTIONS or _HIGHER_ORDER.fullmatch(str(value)):
        return value
    if not computes_on_tensors(str(value)):
        raise UnsafeProgramError(f"it calls {_short(value)}, which is no operator on tensors")
    return value


def _symbol(value: Json) -> Json:
    """PyTorch evaluates an expression as Python code; a lone symbol is harmless."""
    if not (isinstance(value, str) and _SYMBOL.fullmatch(value)):
        raise DynamicShapeError(_short(value))
    return value


def _metadata(value: Json) -> Json:
    texts = cast("dict[str, Json]", value).items()
    return {key: _CONTROL.sub(" ", str(text)) for key, text in texts if key in KEPT_METADATA}


def _device(value: Json) -> Json:
    if value is None:
        return None
    if value["type"] not in ("cpu", "meta"):
        raise UnsafeProgramError(f"a tensor is on {_short(value['type'])}, not on the CPU")
    return {"type": value["type"], "index": None}


def _tensor_values(value: Json) -> Json:
    metas = _by_name(value)
    for name, meta in metas.items():
        if any("as_expr" in each for each in meta["sizes"]):
            continue
        size = tensor_bytes(meta)
        if size > MOST_TENSOR_BYTES:
            raise UnsafeProgramError(
                f"tensor {name} has {size} bytes, more than the {MOST_TENSOR_BYTES} of one tensor"
            )
    return metas


def _by_name(value: Json) -> Json:
    return {cast("str", _name(key)): _walk(item) for key, item in value.items()}


def _static(size: Json) -> int:
    value = size.get("as_int")
    if isinstance(value, bool) or not isinstance(value, int):
        raise DynamicShapeError(_short(size))
    if value < 0:
        raise UnsafeProgramError(f"an extent is {value}")
    return value


def _call(entry: Json) -> Json:
    """The entry of a module; the tree of its arguments names types, which PyTorch would import."""
    kept: dict[str, Json] = {"fqn": require_path(entry["fqn"]), "signature": None}
    given = entry["signature"]
    if given is not None:
        kept["signature"] = {
            "inputs": _walk(given["inputs"]),
            "outputs": _walk(given["outputs"]),
            "in_spec": _tree(given["in_spec"], are_names=True),
            "out_spec": _tree(given["out_spec"], are_names=False),
            "forward_arg_names": _names(given.get("forward_arg_names")),
        }
    return kept


def _tree(text: Json, *, are_names: bool) -> str:
    """Return the text of a tree of arguments; `are_names`, if keys become code."""
    version, root = json.loads(text)
    if version != 1:
        raise UnsafeProgramError(f"a tree of arguments has version {_short(version)}")
    return json.dumps([1, _node(root, are_names)])


def _node(node: Json, are_names: bool) -> Json:
    kind, context = node["type"], node["context"]
    children = [_node(child, are_names) for child in node["children_spec"]]
    if kind is not None and kind not in TREES:
        raise UnsafeProgramError(f"an argument is a {_short(kind)}")
    if context not in (None, "null"):
        keys = json.loads(context)
        rule: Callable[[Json], Json] = _name if are_names else _key
        context = "null" if keys is None else json.dumps([rule(key) for key in keys])
    return {"type": kind, "context": context, "children_spec": children}


def _key(value: Json) -> Json:
    if not isinstance(value, (str, int, float)):
        raise UnsafeProgramError(f"a key of a dictionary is {_short(value)}")
    return value


def _matching(pattern: str, value: object) -> str:
    if not (isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII)):
        raise UnsafeProgramError(f"a name is {_short(value)}")
    return value


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


RULES: Mapping[str, Callable[[Json], Json]] = {
    "as_custom_obj": _refused,
    "as_device": _device,
    "as_name": _name,
    "as_operator": _target,
    "as_string_to_argument": _by_name,
    "buffer_name": require_path,
    "custom_obj": _refused,
    "custom_obj_values": _refused,
    "device": _device,
    "expr_str": _symbol,
    "gradient_to_parameter": _trains,
    "gradient_to_user_input": _trains,
    "layout": layout,
    "loss_output": _trains,
    "metadata": _metadata,
    "name": _name,
    "parameter_name": require_path,
    "sym_bool_values": _by_name,
    "sym_float_values": _by_name,
    "sym_int_values": _by_name,
    "target": _target,
    "token": _has_effects,
    "tensor_constant_name": require_path,
    "tensor_values": _tensor_values,
    "user_input_name": _name,
}
"""Fields whose contents PyTorch turns into more than data, by name."""
