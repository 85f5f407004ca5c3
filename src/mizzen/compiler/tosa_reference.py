"""Execute a TOSA file as the specification says, without an NPU.

What a network means before anything is compiled: its numbers are those that a compiled one must
give. Ref: TOSA 1.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.artifact.batching import arrange, batch_of
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.frontends.tosa import read
from mizzen.ops import require_valid
from mizzen.reference import evaluate_batch

if TYPE_CHECKING:
    from mizzen.diagnostics import Diagnostic
    from mizzen.graph import Value


class TosaReference:
    """A graph that runs: it has of an artifact what running one needs.

    inputs, outputs  what an inference takes and gives
    """

    accelerator: str | None = None
    hazards: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    doubts: tuple[Diagnostic, ...] = ()

    def __init__(self, data: bytes, name: str) -> None:
        """Read a file. Raises E15x for one that is damaged or of another version, E80x."""
        self.name = name
        self.graph = read(data, name)
        require_valid(self.graph)
        self.inputs = tuple(_info(value, f"input_{i}") for i, value in enumerate(self.graph.inputs))
        self.outputs = tuple(
            _info(value, f"output_{i}") for i, value in enumerate(self.graph.outputs)
        )

    def run(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Infer a batch: arrays and outputs are as those of `Artifact.run`.

        Raises E711 to E713 for arrays that do not fit, E820 to E823 where TOSA gives no result.
        """
        batch = batch_of(arrays, self.inputs)
        results = evaluate_batch(self.graph, batch.arrays, batch.size)
        outputs = arrange(results, self.outputs, batch)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _info(value: Value, unnamed: str) -> TensorInfo:
    return TensorInfo(value.name or unnamed, value.shape, value.dtype.numpy, None)
