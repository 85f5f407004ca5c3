"""Batches of inputs: which form the arrays have, and outputs in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mizzen.artifact.fitting import fitted, unsaid
from mizzen.artifact.interface import TensorInfo
from mizzen.diagnostics import MizzenError, fail

Array = npt.NDArray[Any]
Arrays = Sequence[Array]


class Form(Enum):
    """How an array relates to the shape of one inference."""

    ONE = auto()
    """Exactly that shape."""
    MERGED = auto()
    """The first extent, 1 in the model, counts inferences."""
    STACKED = auto()
    """A leading axis more counts inferences."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs `[size, *shape]` and the form in which they came."""

    size: int
    form: Form
    arrays: tuple[Array, ...]

    def part(self, start: int, stop: int) -> Batch:
        """Return the inferences from `start` to before `stop`."""
        return Batch(stop - start, self.form, tuple(array[start:stop] for array in self.arrays))


def in_order(
    arrays: Sequence[Any], named: Mapping[str, Any], inputs: Sequence[TensorInfo]
) -> tuple[Any, ...]:
    """Return arrays in the inputs' order, of which some came by name; a mapping alone has names.

    Arrays without a name are those of the other inputs, in order. E711 for a name that no input
    has, and where the numbers are not the same.
    """
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        arrays, named = (), {**arrays[0], **named}
    names = [info.name for info in inputs]
    unknown = [name for name in named if name not in names]
    if unknown or len(arrays) + len(named) != len(inputs):
        came = f"{len(arrays) + len(named)}" if not unknown else f"one called {unknown[0]!r}"
        raise _other_inputs(inputs, came)
    waiting = iter(arrays)
    return tuple(named[name] if name in named else next(waiting) for name in names)


def batch_of(arrays: Sequence[Any], inputs: Sequence[TensorInfo], without_inputs: int = 1) -> Batch:
    """Bring arrays into the form `[N, *shape]`; N is `without_inputs` for networks without inputs.

    Arrays are NumPy's, PyTorch's tensors, or what NumPy makes arrays of. Floats for an input
    of integers are quantised. Raises E711 for a wrong number of arrays, E712 for a wrong shape or
    type, E713 for batches that are empty or differ, E208 for numbers that an input has no form of.
    """
    if len(arrays) != len(inputs):
        raise _other_inputs(inputs, str(len(arrays)))
    given = [_array(value) for value in arrays]
    forms = [_form(array, info) for array, info in zip(given, inputs, strict=True)]
    stacked = [
        _typed(array, info).reshape(_size(array, form), *info.shape)
        for array, form, info in zip(given, forms, inputs, strict=True)
    ]
    sizes = {len(array) for array in stacked} or {without_inputs}
    if len(sizes) > 1 or 0 in sizes:
        raise fail(
            "E713",
            "all inputs must bring the same number of inferences, at least 1, not "
            f"{[len(array) for array in stacked]}",
        )
    form = _joint(forms) if forms or without_inputs == 1 else Form.MERGED
    return Batch(sizes.pop(), form, tuple(stacked))


def _array(value: Any) -> Array:
    """Return a value as an array: tensors of PyTorch's, also in a list, without their gradient."""
    if isinstance(value, list | tuple):
        several = cast("Sequence[Any]", value)
        if any(hasattr(each, "detach") for each in several):
            return np.asarray([_array(each) for each in several])
        return np.asarray(several)
    detach = getattr(value, "detach", None)
    return np.asarray(value if detach is None else detach().cpu())


def _typed(array: Array, info: TensorInfo) -> Array:
    """Return an array in the type of an input. E712 for one that is of another kind."""
    own = fitted(array, info, unsaid)
    if own.dtype != info.dtype:
        raise fail(
            "E712",
            f"input {info.name!r} must be of type {info.dtype}, not {array.dtype}",
            help=f"give what the model was trained with, array.astype({str(info.dtype)!r})",
        )
    return own


def parts_of(batch: Batch, largest: int) -> list[Batch]:
    """Cut a batch into parts of at most so many inferences."""
    starts = range(0, batch.size, largest)
    return [batch.part(start, min(start + largest, batch.size)) for start in starts]


def arrange(arrays: Arrays, outputs: Sequence[TensorInfo], batch: Batch) -> list[Array]:
    """Bring outputs `[N, *shape]` into the form in which the inputs came."""
    arranged: list[Array] = []
    for array, info in zip(arrays, outputs, strict=True):
        match batch.form:
            case Form.ONE:
                arranged.append(array.reshape(info.shape))
            case Form.MERGED if info.shape[:1] == (1,):
                arranged.append(array.reshape(batch.size, *info.shape[1:]))
            case _:
                arranged.append(array.reshape(batch.size, *info.shape))
    return arranged


def _form(array: Array, info: TensorInfo) -> Form:
    """Return how an array relates to one inference. E712 for another shape."""
    shape = array.shape
    if shape == info.shape:
        return Form.ONE
    if info.shape[:1] == (1,) and len(shape) and shape[1:] == info.shape[1:]:
        return Form.MERGED
    if len(shape) and shape[1:] == info.shape:
        return Form.STACKED
    expected = f"[N, {', '.join(map(str, info.shape))}]"
    if info.shape[:1] == (1,):
        expected = f"[N{''.join(f', {extent}' for extent in info.shape[1:])}] or {expected}"
    raise fail(
        "E712",
        f"input {info.name!r} must be of shape {expected}, not {list(shape)}",
        help="N counts inferences; array.reshape() or array[None] may give this shape",
    )


def _other_inputs(inputs: Sequence[TensorInfo], came: str) -> MizzenError:
    names = ", ".join(repr(info.name) for info in inputs)
    return fail(
        "E711",
        f"the network takes {len(inputs)} inputs ({names}), not {came}",
        help="give one array for each input, in this order or by name",
    )


def _size(array: Array, form: Form) -> int:
    return 1 if form is Form.ONE else len(array)


def _joint(forms: Sequence[Form]) -> Form:
    """Return the form of the outputs: the model's own where every input has its own shape."""
    for form in (Form.MERGED, Form.STACKED):
        if form in forms:
            return form
    return Form.ONE
