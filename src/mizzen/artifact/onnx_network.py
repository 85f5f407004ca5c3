"""A whole ONNX network in ONNX Runtime: what an artifact is held against."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mizzen.artifact.interface import Array, TensorInfo
from mizzen.artifact.onnx_steps import TYPES, results_of, session_of


class OnnxNetwork:
    """A network whose shapes are all known, on one thread; pickled, it is read again.

    data  the bytes of a file that names nothing outside of itself
    """

    accelerator = None
    report = None

    def __init__(self, data: bytes, name: str) -> None:
        """Read a network. E195 without ONNX Runtime, E725 for one that it refuses."""
        self.data = data
        self.name = name
        self.inputs, self.outputs = (
            tuple(map(_info, places))
            for places in (self._session.get_inputs(), self._session.get_outputs())
        )

    def run(self, *arrays: Array) -> tuple[Array, ...]:
        """Infer `[N, *shape]`, one inference after the other."""
        collected: list[list[Array]] = []
        for inference in zip(*arrays, strict=True):
            given = {
                info.name: np.ascontiguousarray(array.reshape(info.shape).astype(info.dtype))
                for info, array in zip(self.inputs, inference, strict=True)
            }
            collected.append(results_of(self._session, given, self.name))
        return tuple(np.stack(each) for each in zip(*collected, strict=True))

    def __reduce__(self) -> tuple[type[OnnxNetwork], tuple[bytes, str]]:
        """Return a constructor and its arguments that make it again in another process."""
        return OnnxNetwork, (self.data, self.name)

    @cached_property
    def _session(self) -> Any:
        return session_of(self.data, self.name)


def _info(place: Any) -> TensorInfo:
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in place.shape)
    return TensorInfo(place.name, shape, TYPES[place.type], None)
