"""TOSA files that are executed as TOSA says: what no file may have is refused before."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.compiler.tosa_reference import TosaReference
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tosa import SCHEMA
from mizzen.graph import DType, Graph, TensorType
from mizzen.ops import Builder
from mizzen.package.tosa import write as write_graph


def pooled() -> bytes:
    graph = Graph("small")
    b = Builder(graph)
    x = graph.add_input(TensorType((1, 4, 4, 2), DType.INT8), "x")
    graph.set_outputs([b("MAX_POOL2D", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))])
    return write_graph(graph)


def changed(**fields: object) -> bytes:
    """Return the file with other fields in its one block."""
    record = read(pooled(), SCHEMA, "small")
    record["regions"][0]["blocks"][0].update(fields)
    return write(record, SCHEMA)


def tensors(**fields: object) -> list[Record]:
    """Return the file's tensors, with other fields in the pool's result."""
    record = read(pooled(), SCHEMA, "small")
    (first, second) = record["regions"][0]["blocks"][0]["tensors"]
    return [first, {**second, **fields}]


def test_a_sound_file_runs() -> None:
    found = TosaReference(pooled(), "small.tosa").run(np.zeros((1, 4, 4, 2), np.int8))
    assert isinstance(found, np.ndarray)
    assert found.shape == (1, 2, 2, 2)


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (changed(outputs=[]), "E157", "small.tosa must have an output, and has none"),
        (changed(outputs=None), "E157", "small.tosa must have an output, and has none"),
        (changed(operators=[], inputs=[], outputs=[]), "E157", "must have an output"),
        (changed(tensors=tensors(shape=np.array([1, 2, 3, 2], np.int32))), "E808", "MAX_POOL2D"),
        (changed(tensors=tensors(type=5)), "E803", "MAX_POOL2D"),
    ],
)
def test_what_tosa_does_not_allow(data: bytes, code: str, said: str) -> None:
    with pytest.raises(MizzenError, match=said) as error:
        TosaReference(data, "small.tosa")
    assert error.value.diagnostic.code == code
