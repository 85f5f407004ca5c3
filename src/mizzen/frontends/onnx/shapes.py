"""Types of a network's inputs, with every dimension bound to a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.onnx.model import TensorType
from mizzen.frontends.onnx.tensors import dtype_of, require_extents
from mizzen.frontends.onnx.wire import Message

Shapes = Mapping[str, tuple[int, ...] | int]
"""Shapes of inputs by their names, and extents of symbolic dimensions by theirs."""

_OTHER_TYPES = {
    "sequence_type": "a sequence",
    "map_type": "a map",
    "optional_type": "an optional value",
    "sparse_tensor_type": "a sparse tensor",
}


@dataclass(eq=False)
class Binding:
    """What dimensions are, and what was decided about them."""

    file: str
    shapes: Shapes
    extents: dict[str, int] = field(default_factory=dict[str, int])
    given: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    said: list[str] = field(default_factory=list[str])

    def bind(self, inputs: list[Message]) -> dict[str, TensorType]:
        """Bind the dimensions of all inputs.

        Raises E189 for a dimension that nothing binds, E190 and E194 for types that are none of
        tensors, E197 for a shape that is of no input, or does not fit the one that it is of.
        """
        tensors = [(message.get("name", ""), self._tensor(message)) for message in inputs]
        dims = {name: _dims(tensor) for name, tensor in tensors}
        self._take(dims)
        for name, shape in self.given.items():
            self._learn(name, dims[name], shape)
        for name in (name for name in dims if name not in self.given):
            self._take_batch(name, dims[name])
        return {name: self._bound(name, dims[name], tensor) for name, tensor in tensors}

    def declared(self, message: Message) -> TensorType | None:
        """Say the type that the file gives a tensor within, if it is whole; it may be wrong."""
        tensor = message.get("type", {}).get("tensor_type")
        dims = None if tensor is None else _dims(tensor)
        if tensor is None or dims is None:
            return None
        shape = [self.extents.get(d, -1) if isinstance(d, str) else d for d in dims]
        if any(extent is None or extent < 0 for extent in shape):
            return None
        extents = tuple(extent for extent in shape if extent is not None)
        try:
            require_extents(extents, "a tensor", Origin(model=self.file))
            return TensorType(dtype_of(tensor.get("elem_type", 0), "", Origin()), extents)
        except MizzenError:
            return None

    def _tensor(self, message: Message) -> Message:
        name, type = message.get("name", ""), message.get("type", {})
        for other, words in _OTHER_TYPES.items():
            if other in type:
                raise fail(
                    "E194",
                    f'input "{name}" must be a tensor, and is {words}',
                    origin=Origin(model=self.file, name=name),
                )
        return type.get("tensor_type", {})

    def _take(self, dims: Mapping[str, list[int | str | None] | None]) -> None:
        """Take what the user says: numbers are of dimensions, or of inputs that have one."""
        symbols = {d for every in dims.values() for d in every or () if isinstance(d, str)}
        for name, shape in self.shapes.items():
            if isinstance(shape, int) and name in symbols:
                self.extents[name] = shape
            elif name in dims:
                self.given[name] = (shape,) if isinstance(shape, int) else shape
            else:
                known = ", ".join([*sorted(dims), *sorted(symbols)][:8])
                raise fail(
                    "E197",
                    f'"{name}" must be an input of {self.file} or a symbolic dimension of one, '
                    f"which are: {known}",
                    help="name an input, --shape input=1,3,96,96, or a dimension, --shape batch=1",
                )

    def _learn(
        self, name: str, dims: list[int | str | None] | None, shape: tuple[int, ...]
    ) -> None:
        """Take extents of symbols from a shape that was given."""
        self._require_rank(name, dims, shape)
        for symbol, extent in zip(dims or (), shape, strict=False):
            if isinstance(symbol, str):
                self.extents.setdefault(symbol, extent)

    def _take_batch(self, name: str, dims: list[int | str | None] | None) -> None:
        """Take the first dimension as 1, where nothing says what it is."""
        first = dims[0] if dims else 1
        if isinstance(first, str) and first not in self.extents:
            self.extents[first] = 1
            self.said.append(
                f'dimension "{first}" of input "{name}" is taken as 1; '
                f"--shape {first}=N says another"
            )

    def _require_rank(
        self, name: str, dims: list[int | str | None] | None, shape: tuple[int, ...]
    ) -> None:
        fits = dims is None or (
            len(dims) == len(shape)
            and all(not isinstance(d, int) or d == e for d, e in zip(dims, shape, strict=True))
        )
        if not fits:
            raise fail(
                "E197",
                f'shape {list(shape)} must fit input "{name}", which is {_text(dims or [])}',
                origin=Origin(model=self.file, name=name),
            )

    def _bound(self, name: str, dims: list[int | str | None] | None, tensor: Message) -> TensorType:
        origin = Origin(model=self.file, name=name)
        shape = self.given.get(name)
        if shape is None:
            shape = tuple(
                self._extent(name, place, dim, dims)
                for place, dim in enumerate(self._rank(name, dims))
            )
        require_extents(shape, f'input "{name}"', origin)
        dtype = dtype_of(tensor.get("elem_type", 0), f'input "{name}"', origin)
        return TensorType(np.dtype(dtype), shape)

    def _rank(self, name: str, dims: list[int | str | None] | None) -> list[int | str | None]:
        if dims is None:
            raise fail(
                "E189",
                f'input "{name}" must have a shape, and the file gives it none',
                origin=Origin(model=self.file, name=name),
                help=f"say it: --shape {name}=1,3,96,96",
            )
        return dims

    def _extent(
        self, name: str, place: int, dim: int | str | None, dims: list[int | str | None] | None
    ) -> int:
        if isinstance(dim, int):
            return dim
        if isinstance(dim, str) and dim in self.extents:
            return self.extents[dim]
        if dim is None and place == 0:
            self.said.append(
                f'the first dimension of input "{name}" is taken as 1; '
                f"--shape {name}=N,... says another"
            )
            return 1
        option = f"{dim}=N" if isinstance(dim, str) else f"{name}=" + ",".join(
            "N" if d is None else str(d) for d in dims or ()
        )  # fmt: skip
        what = f'dimension "{dim}"' if isinstance(dim, str) else f"dimension {place}"
        raise fail(
            "E189",
            f'{what} of input "{name}" must be a number, and {_text(dims or [])} leaves it open',
            origin=Origin(model=self.file, name=name),
            help=f"say it: --shape {option}",
        )


def _dims(tensor: Message) -> list[int | str | None] | None:
    """Say the dimensions of a type: a number, a symbol, or nothing; None without a shape."""
    if "shape" not in tensor:
        return None
    return [_dim(dim) for dim in tensor["shape"].get("dim", ())]


def _dim(message: Message) -> int | str | None:
    """Take -1 and 0, which some exporters write, as open."""
    if message.get("dim_param"):
        return message["dim_param"]
    extent = message.get("dim_value", -1)
    return extent if extent > 0 else None


def _text(dims: list[int | str | None]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"
