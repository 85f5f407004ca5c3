"""What users bring to calibrate with, as calls of the model.

A call is a tuple of the model's arguments. Loaders of data bring more or less than that: labels
after the inputs, larger batches than the one that the artifact is for, single samples, arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mizzen.diagnostics import MizzenError, fail

Call = tuple[Any, ...]


def call_of(item: Any) -> Call:
    """Return the arguments that a list or tuple stands for; anything else is the only argument."""
    return tuple(item) if type(item) in (tuple, list) else (item,)


def calls_of(example: Call, items: Iterable[Any]) -> Iterator[Call]:
    """Yield calls with the shapes of an example.

    What comes after the model's arguments is left out, and a larger batch is cut into several
    calls. E880 for rows that are no such arguments.
    """
    for index, item in enumerate(items):
        yield from _cut(example, call_of(item)[: len(example)], index)


def _cut(example: Call, call: Call, index: int) -> Iterator[Call]:
    from torch.utils._pytree import tree_flatten, tree_unflatten

    wanted, form = tree_flatten(example)
    given, own_form = tree_flatten(call)
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
        yield tree_unflatten(flat, form)


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
        help="give tuples of the model's arguments; labels may follow them, and a batch may be "
        "larger than the example's",
    )
