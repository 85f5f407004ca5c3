"""Batches of inputs: which form the arrays have, and outputs in the same form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail

Array = npt.NDArray[Any]
Arrays = Sequence[Array]


class Interface(Protocol):
    """An input or output of a network."""

    @property
    def name(self) -> str:
        """Its name in the model."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape for one inference."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type."""
        ...


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


def batch_of(arrays: Arrays, inputs: Sequence[Interface], without_inputs: int = 1) -> Batch:
    """Bring arrays into the form `[N, *shape]`; N is `without_inputs` for networks without inputs.

    Raises E711 for a wrong number of arrays, E712 for a wrong shape or type, E713 for batches that
    are empty or differ.
    """
    if len(arrays) != len(inputs):
        names = ", ".join(repr(info.name) for info in inputs)
        raise fail(
            "E711",
            f"the network takes {len(inputs)} inputs ({names}), not {len(arrays)}",
            help="give one array for each input, in this order",
        )
    forms = [_form(array, info) for array, info in zip(arrays, inputs, strict=True)]
    stacked = [
        np.asarray(array).reshape(_size(array, form), *info.shape)
        for array, form, info in zip(arrays, forms, inputs, strict=True)
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


def parts_of(batch: Batch, largest: int) -> list[Batch]:
    """Cut a batch into parts of at most so many inferences."""
    starts = range(0, batch.size, largest)
    return [batch.part(start, min(start + largest, batch.size)) for start in starts]


def arrange(arrays: Arrays, outputs: Sequence[Interface], batch: Batch) -> list[Array]:
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


def _form(array: Array, info: Interface) -> Form:
    shape = np.shape(array)
    if np.asarray(array).dtype != info.dtype:
        raise _mismatch(info, f"of type {info.dtype}, not {np.asarray(array).dtype}")
    if shape == info.shape:
        return Form.ONE
    if info.shape[:1] == (1,) and len(shape) and shape[1:] == info.shape[1:]:
        return Form.MERGED
    if len(shape) and shape[1:] == info.shape:
        return Form.STACKED
    expected = f"[N, {', '.join(map(str, info.shape))}]"
    if info.shape[:1] == (1,):
        expected = f"[N{''.join(f', {extent}' for extent in info.shape[1:])}] or {expected}"
    raise _mismatch(info, f"of shape {expected}, not {list(shape)}")


def _mismatch(info: Interface, expected: str) -> MizzenError:
    return fail(
        "E712",
        f"input {info.name!r} must be {expected}",
        help="N counts inferences; quantise real numbers with the input's scale and zero point",
    )


def _size(array: Array, form: Form) -> int:
    return 1 if form is Form.ONE else len(array)


def _joint(forms: Sequence[Form]) -> Form:
    """Return the form of the outputs: the model's own where every input has its own shape."""
    for form in (Form.MERGED, Form.STACKED):
        if form in forms:
            return form
    return Form.ONE
