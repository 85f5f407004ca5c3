"""Results that the next inference gives in place of the simulator's, once.

TVM's tests run without hardware: `inference_result(*tensors)` stores copies, the next inference
gives them back if their number is that of its outputs, and forgets them. This proves how arrays
travel, never what is computed; the simulator does that.

Ref: Apache TVM v0.14.0, Ethos-N: `relay.ethos-n.test.infra.inference_result`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Infer = Callable[[Sequence[Array]], Sequence[Array]]
"""Gives an inference's outputs."""


class Backdoor:
    """Stands before inferences."""

    def __init__(self) -> None:
        self._waiting: tuple[Array, ...] | None = None

    def inference_result(self, *tensors: Array) -> None:
        """Say what the next inference gives."""
        self._waiting = tuple(tensor.copy() for tensor in tensors)

    def before(self, infer: Infer, outputs: int) -> Infer:
        """Put the backdoor before an inference of some outputs.

        Where what waits has another number, it is dropped, and the inference is done.
        """

        def inferred(arrays: Sequence[Array]) -> Sequence[Array]:
            waiting, self._waiting = self._waiting, None
            if waiting is None or len(waiting) != outputs:
                return infer(arrays)
            return waiting

        return inferred
