"""Whatever a network is like, lowering it ends in a graph or in a diagnostic."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.lower import Lowered, lower

NETWORKS = [case.build() for case in cases()]
NUMBERS = st.sampled_from([0, 1, -1, 2, 3, 7, 100, 127, -128])
SCALES = [0.0, -1.0, 1e-30, 1e30, 1e-8, 0.1, 1e8, float("inf"), float("nan"), 1e-38, 3e38]
CODES = {"E107", "E132"}


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Return a network of the conformance suite with other shapes, scales, options or contents."""
    record = read_file(draw(st.sampled_from(NETWORKS)), SCHEMA, "file")
    for _ in range(draw(st.integers(1, 3))):
        _change(draw, record)
    return write(record, SCHEMA)


def _change(draw: st.DrawFn, record: Record) -> None:
    main = record["subgraphs"][0]
    tensor: Record = draw(st.sampled_from(main["tensors"]))
    operator: Record = draw(st.sampled_from(main["operators"]))
    quantization: Record = tensor["quantization"] or {}
    match draw(st.sampled_from(("shape", "type", "scale", "zero", "option", "input", "contents"))):
        case "shape":
            shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 9]), max_size=5))
            tensor["shape"] = np.array(shape, np.int32)
        case "type":
            tensor["type"] = draw(st.sampled_from([int(each) for each in TensorType]))
        case "scale":
            scales = draw(st.lists(st.sampled_from(SCALES), min_size=1, max_size=3))
            quantization.update(scale=np.array(scales, np.float32), zero_point=None)
        case "zero":
            quantization.update(zero_point=np.array([draw(NUMBERS) * 1000], np.int64))
        case "option" if operator["builtin_options"] is not None:
            fields: dict[str, Any] = operator["builtin_options"].fields
            plain = sorted(name for name, each in fields.items() if isinstance(each, (int, float)))
            if plain:
                name = draw(st.sampled_from(plain))
                fields[name] = type(fields[name])(draw(NUMBERS))
        case "input":
            indices = st.integers(-1, len(main["tensors"]) - 1)
            operator["inputs"] = np.array(draw(st.lists(indices, max_size=4)), np.int32)
        case _:
            _change_contents(draw, record)


def _change_contents(draw: st.DrawFn, record: Record) -> None:
    buffer: Record = draw(st.sampled_from(record["buffers"]))
    if buffer["data"] is not None and buffer["data"].size:
        data = buffer["data"].copy()
        data[draw(st.integers(0, data.size - 1))] = draw(st.integers(0, 255))
        buffer["data"] = data


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(changed())
def test_lowering(data: bytes) -> None:
    try:
        model = read(data, "file")
    except MizzenError:
        return
    code = None
    try:
        found = lower(model)
    except MizzenError as error:
        code = error.diagnostic.code
    else:
        assert_every_operator_is_there(found)
    assert code is None or code in CODES


def assert_every_operator_is_there(found: Lowered) -> None:
    groups = {row.group for row in found.graph if not row.kind.startswith("CONST")}
    assert groups == {operator.index for operator in found.model.main.operators}
