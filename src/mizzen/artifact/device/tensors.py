"""The tensors of a device's program, numbered as they are first named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mizzen.artifact.interface import Array, TensorInfo
from mizzen.cpu.operator_calls import device_tensor
from mizzen.diagnostics import fail
from mizzen.frontends.tflite import Model
from mizzen.package.device import DeviceTensor
from mizzen.targets.ethos_u.machine.program import TensorAddress

if TYPE_CHECKING:
    from mizzen.artifact.execution import Contents


class Tensors:
    """Tensors of an artifact by their index there, and others that only the device has.

    rows         all so far
    arena_bytes  how far the compiler's plan of the arena goes, as far as it is known
    """

    def __init__(self, contents: Contents, network: Model | None) -> None:
        self._contents = contents
        self._network = network
        self._numbers: dict[int, int] = {}
        self._rows: list[DeviceTensor] = []
        arena = contents.arena
        self.arena_bytes = 0 if arena is None else max(arena.block_bytes.values())

    @property
    def rows(self) -> tuple[DeviceTensor, ...]:
        """All tensors so far, in the order of their numbers."""
        return tuple(self._rows)

    def row(self, number: int) -> DeviceTensor:
        """Return a tensor by its number."""
        return self._rows[number]

    def add(self, tensor: DeviceTensor) -> int:
        """Return the number of a tensor that only the device has."""
        self._rows.append(tensor)
        return len(self._rows) - 1

    def number(self, index: int) -> int:
        """Return the number of a tensor of the artifact.

        E452 for one that is no array, E454 where the artifact does not say what it is.
        """
        if index not in self._numbers:
            self._numbers[index] = self.add(self._made(index))
        return self._numbers[index]

    def fix(
        self, indices: Sequence[int], offsets_bytes: Sequence[int], places: Sequence[TensorAddress]
    ) -> None:
        """Say where in the arena tensors of the artifact lie."""
        for index, offset, place in zip(indices, offsets_bytes, places, strict=True):
            number = self.number(index)
            self._rows[number] = replace(self._rows[number], offset_bytes=offset)
            self.reach(offset + place.size_bytes)

    def reach(self, end_bytes: int) -> None:
        """Say that the compiler's plan goes at least so far."""
        self.arena_bytes = max(self.arena_bytes, end_bytes)

    def _made(self, index: int) -> DeviceTensor:
        arena = self._contents.arena
        place = None if arena is None else arena.places.get(index)
        offset = None if place is None else place.offset_bytes
        constant = self._contents.constants.get(index)
        info = self._contents.infos.get(index)
        if self._network is not None and index < len(self._network.main.tensors):
            return device_tensor(self._network.main.tensors[index], offset)
        if info is None:
            raise fail(
                "E454",
                "the artifact must say the shape and type of every tensor between its steps, and "
                f"does not of tensor {index}",
                help="compile the program again; archives of earlier releases do not say it",
            )
        return _of_program(info, constant, offset)


def _of_program(info: TensorInfo, constant: Array | None, offset: int | None) -> DeviceTensor:
    quantization = info.quantization
    return DeviceTensor(
        info.name,
        info.shape,
        info.dtype,
        () if quantization is None else tuple(quantization.scale),
        () if quantization is None else tuple(quantization.zero_point),
        0 if quantization is None else quantization.axis,
        constant,
        offset,
    )
