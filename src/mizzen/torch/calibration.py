"""What users bring to calibrate with, as calls of the model.

Loaders of data bring more or less than a model's arguments: labels after them, larger batches than
the one that the artifact is for, single samples, arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mizzen.compiler.torch.call import Call, mapping_of
from mizzen.diagnostics import MizzenError, fail


def calls_of(example: Call, items: Iterable[Any]) -> list[Call]:
    """Return calls with the shapes of an example.

    An item has the arguments in the example's order, or is a mapping that has them by name. What
    comes after them is left out, and a larger batch is cut into several calls. E880 for what has no
    such arguments, or where there is nothing.
    """
    calls = [
        call
        for index, item in enumerate(items)
        for call in _cut(example, _like(example, item, index), index)
    ]
    if not calls:
        raise fail(
            "E880",
            "calibration must have at least one call's arguments, and is empty",
            help="give some dozens of real inputs; a generator that was read once is empty",
        )
    return calls


def _like(example: Call, item: Any, index: int) -> Call:
    """Return an item's arguments, arranged as the example's."""
    names, values = example.names, mapping_of(item)
    if values is not None and not _is_argument(example, values):
        missing = [name for name in names if name not in values]
        if missing:
            came = ", ".join(map(str, values))
            lacking = ", ".join(map(repr, missing))
            what = f"called {', '.join(names)}, and {came} came, without {lacking}"
            raise _unlike(index, what)
        given: Sequence[Any] = [values[name] for name in names]
    else:
        given = item if type(item) in (tuple, list) else [item]
    count = len(example.positional)
    ordered = map(_nested_as, example.positional, given[:count])
    others = zip(example.named.items(), given[count:], strict=False)
    named = {name: _nested_as(wanted, value) for (name, wanted), value in others}
    return Call(tuple(ordered), named, example.parameters)


def _is_argument(example: Call, item: Mapping[Any, Any]) -> bool:
    """Whether a mapping is the one argument of the example's, and does not name its arguments."""
    values: list[Any] = [*example.positional, *example.named.values()]
    wanted = mapping_of(values[0]) if len(values) == 1 else None
    return wanted is not None and wanted.keys() <= item.keys()


def _nested_as(example: Any, given: Any) -> Any:
    """Return an argument whose dicts have the keys of the example's, in their order."""
    wanted, values = mapping_of(example), mapping_of(given)
    if wanted is None or values is None or not wanted.keys() <= values.keys():
        return given
    return {key: _nested_as(value, values[key]) for key, value in wanted.items()}


def _cut(example: Call, call: Call, index: int) -> Iterator[Call]:
    from torch.utils._pytree import tree_flatten, tree_unflatten

    wanted, form = tree_flatten(example.arguments)
    given, own_form = tree_flatten(call.arguments)
    if form != own_form:
        raise _unlike(index, f"{len(wanted)} in the example's order, and {len(given)} came")
    parts = [_parts(*pair, index) for pair in zip(wanted, given, strict=True)]
    sizes = {len(part) for part in parts if part is not None}
    if len(sizes) > 1:
        raise _unlike(index, "all of one batch, and batches of different sizes came")
    for number in range(sizes.pop() if sizes else 1):
        flat = [
            value if part is None else part[number]
            for part, value in zip(parts, given, strict=True)
        ]
        positional, named = tree_unflatten(flat, form)
        yield Call(positional, named, example.parameters)


def _parts(wanted: Any, given: Any, index: int) -> list[Any] | None:
    """Return a tensor as tensors of the wanted shape; None for what is no tensor."""
    import torch

    if not isinstance(wanted, torch.Tensor):
        return None
    try:
        value = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise _unlike(index, f"tensors, and a {type(given).__name__} came") from None
    if value.is_floating_point() and wanted.is_floating_point():
        value = value.to(wanted.dtype)
    shape, came = tuple(wanted.shape), tuple(value.shape)
    if value.dtype != wanted.dtype:
        raise _unlike(index, f"{wanted.dtype}, and {value.dtype} came")
    if came == shape:
        return [value]
    if shape and came == shape[1:] and shape[0] == 1:
        return [value[None]]
    if shape and len(came) == len(shape) and came[1:] == shape[1:] and came[0] >= shape[0] > 0:
        starts = range(0, came[0] - shape[0] + 1, shape[0])
        return [value[start : start + shape[0]] for start in starts]
    raise _unlike(index, f"of shape {shape}, and {came} came")


def _unlike(index: int, what: str) -> MizzenError:
    return fail(
        "E880",
        f"calibration's row {index} must be arguments like the example's: {what}",
        help="give tuples of the model's arguments, or dicts that name them; labels may follow, "
        "and a batch may be larger than the example's",
    )
