"""Networks that no converter writes end in an artifact or in a diagnostic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA

from .small import small_network

Change = Callable[[Record], None]
ACCELERATORS = ["ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple"]


def operator(index: int, **fields: Any) -> Change:
    return lambda main: main["operators"][index].update(fields)


def tensor(index: int, **fields: Any) -> Change:
    return lambda main: main["tensors"][index].update(fields)


def scale(index: int, value: float) -> Change:
    def apply(main: Record) -> None:
        main["tensors"][index]["quantization"]["scale"] = np.array([value], np.float32)

    return apply


DAMAGED: dict[str, Change] = {
    "a result twice": operator(2, outputs=np.array([7, 7], np.int32)),
    "a scale of zero": scale(3, 0.0),
    "a scale that is no number": scale(3, float("nan")),
    "an endless scale": scale(0, float("inf")),
    "a negative scale": scale(7, -1.0),
}


def damaged(name: str) -> bytes:
    record = read(small_network(), SCHEMA, "net")
    DAMAGED[name](record["subgraphs"][0])
    return write(record, SCHEMA)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", DAMAGED)
def test_no_other_exception_than_a_diagnostic(name: str, accelerator: str) -> None:
    with suppress(mizzen.MizzenError):
        artifact = mizzen.compile(damaged(name), accelerator)
        artifact.run(*(np.zeros(row.shape, row.dtype) for row in artifact.inputs))
