"""What users call the inputs and outputs of an exported program: parameters, and keys of dicts.

PyTorch keeps how arguments and results are nested. A tensor in a dict has its key, another argument
the parameter's name; what has neither is numbered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def input_names(exported: ExportedProgram) -> dict[str, str]:
    """Return the name of each input, by that of its placeholder."""
    placeholders = [
        spec.arg.name
        for spec in exported.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT"
    ]
    # Arguments are a tuple of those without a keyword and a dict of the others.
    keys = [_key(path[1:]) for path in _paths(exported.call_spec.in_spec, len(placeholders))]
    named = [key or name for key, name in zip(keys, placeholders, strict=True)]
    return dict(zip(placeholders, _unique(named, placeholders), strict=True))


def output_names(exported: ExportedProgram, places: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the results at some places among all that the program gives."""
    count = len(exported.graph_signature.user_outputs)
    keys = [_key(path) for path in _paths(exported.call_spec.out_spec, count)]
    numbers = [f"output_{number}" for number in range(len(places))]
    named = [keys[place] or number for place, number in zip(places, numbers, strict=True)]
    return tuple(_unique(named, numbers))


def _paths(spec: Any, count: int) -> list[tuple[Any, ...]]:
    """Return where each of so many leaves is; nowhere where the program does not say."""
    from torch.utils._pytree import tree_flatten_with_path, tree_unflatten

    if spec is None or spec.num_leaves != count:
        return [()] * count
    flatten: Any = tree_flatten_with_path
    leaves, _ = flatten(tree_unflatten(range(count), spec))
    return [path for path, _ in leaves]


def _key(path: Sequence[Any]) -> str:
    """Return the innermost key on a path, with the numbers after it; empty without one."""
    parts: list[str] = []
    for step in reversed(path):
        key = getattr(step, "key", None)
        name = key if isinstance(key, str) else getattr(step, "name", None)
        parts.insert(0, str(getattr(step, "idx", "") if name is None else name))
        if name is not None:
            return "_".join(parts)
    return ""


def _unique(names: Sequence[str], otherwise: Sequence[str]) -> list[str]:
    """Return names, those of `otherwise` where one is given twice."""
    counts = Counter(names)
    return [
        name if counts[name] == 1 else other for name, other in zip(names, otherwise, strict=True)
    ]
