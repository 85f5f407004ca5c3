"""The evaluated values of a program: tensors, and the arguments of kernels, each kept once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence

from mizzen.flatbuffer import Member, Record
from mizzen.package.device import Number

ABSENT = -1
"""The place of a tensor that a list leaves out."""


class Values:
    """Numbers values as they are first asked for.

    describe  the record of a tensor, by its index in the device's program
    """

    def __init__(self, describe: Callable[[int], Record]) -> None:
        self._describe = describe
        self._places: dict[Hashable, int] = {}
        self._rows: list[Record] = []

    @property
    def rows(self) -> list[Record]:
        """All values so far, as records."""
        return self._rows

    def tensor(self, index: int) -> int:
        """Return the place of a tensor of the device's program."""
        key = ("Tensor", index)
        if key not in self._places:
            self._add(key, Member("Tensor", self._describe(index)))
        return self._places[key]

    def number(self, value: Number) -> int:
        """Return the place of a value that is no tensor and no list."""
        match value:
            case None:
                return self._once("Null", None, {})
            case bool():
                return self._once("Bool", value, {"bool_val": value})
            case int():
                return self._once("Int", value, {"int_val": value})
            case float():
                return self.real(value)
            case str():
                return self._once("String", value, {"string_val": value})
            case bytes():
                raise TypeError("no kernel of ExecuTorch takes bytes")

    def real(self, value: float) -> int:
        """Return the place of a real number; those of different bits are different."""
        return self._once("Double", struct.pack("<d", value), {"double_val": float(value)})

    def numbers(self, values: Sequence[Number], real: bool = False) -> int:
        """Return the place of a list; the elements of one of integers are values themselves."""
        if real or any(isinstance(value, float) for value in values):
            items = [float(value) for value in values if isinstance(value, int | float)]
            return self._once(
                "DoubleList", struct.pack(f"<{len(items)}d", *items), {"items": items}
            )
        if values and all(isinstance(value, bool) for value in values):
            return self._once("BoolList", tuple(values), {"items": list(values)})
        places = [self.number(value) for value in values]
        return self._once("IntList", tuple(places), {"items": places})

    def tensors(self, indices: Sequence[int]) -> int:
        """Return the place of a list of tensors."""
        places = [self.tensor(index) for index in indices]
        return self._once("TensorList", tuple(places), {"items": places})

    def some_tensors(self, indices: Sequence[int | None]) -> int:
        """Return the place of a list of tensors of which some may be absent."""
        places = [ABSENT if index is None else self.tensor(index) for index in indices]
        return self._once("OptionalTensorList", tuple(places), {"items": places})

    def _once(self, table: str, key: Hashable, record: Record) -> int:
        whole = (table, key)
        if whole not in self._places:
            self._add(whole, Member(table, record))
        return self._places[whole]

    def _add(self, key: Hashable, member: Member) -> None:
        self._places[key] = len(self._rows)
        self._rows.append({"val": member})
