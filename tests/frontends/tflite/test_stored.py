"""Constants that a file has in another form than operators take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.conformance.oracles import litert
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record, write
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer.tflite import DTYPES, PACKED_BITS, SCHEMA, TensorType
from mizzen.frontends.tflite import read
from mizzen.frontends.tflite.stored import WIDENED
from mizzen.package.tflite.builder import NetworkBuilder

from .sparse_files import Form, densified, packed, vector, with_int4

Array = npt.NDArray[Any]

ROWS = Form((0, 1), (1,))
BLOCKS = Form((0, 1, 2), (1,), {1: 16})
SQUARES = Form((0, 1, 2, 3), (1,), {0: 4, 1: 4})
FORMS = {
    "rows": ((8, 16), ROWS),
    "columns": ((8, 16), Form((1, 0), (1,))),
    "both levels sparse": ((8, 16), Form((0, 1), (0, 1))),
    "all dense": ((8, 16), Form((0, 1), ())),
    "blocks of 16": ((16, 32), BLOCKS),
    "blocks of 4 by 4": ((8, 16), SQUARES),
    "blocks of 4 by 4, columns first": ((8, 16), Form((1, 0, 2, 3), (1,), {0: 4, 1: 4})),
    "bytes": ((8, 16), Form((0, 1), (1,), segments="Uint8Vector", indices="Uint8Vector")),
    "16 bits": ((8, 16), Form((0, 1), (1,), segments="Uint16Vector", indices="Uint16Vector")),
    "a filter": ((4, 3, 3, 8), Form((0, 1, 2, 3), (3,))),
    "a filter in blocks of channels": ((4, 3, 3, 8), Form((0, 1, 2, 3, 4), (3,), {3: 4})),
    "a filter, channels first": ((4, 3, 3, 8), Form((3, 0, 1, 2), (1, 2))),
}
KINDS = (np.int8, np.float32)


def random(shape: tuple[int, ...], dtype: npt.DTypeLike = np.int8, share: float = 0.2) -> Array:
    """Return numbers most of which are zero."""
    numbers = np.random.default_rng(0)
    values = numbers.integers(-128, 128, shape) * (numbers.random(shape) < share)
    return values.astype(dtype)


def constant(data: bytes, name: str) -> Array:
    """Return the contents of a constant as they are read."""
    tensors = read(data, "net").main.tensors
    (found,) = (row.values for row in tensors if row.name == name)
    assert found is not None
    return found


class TestSparse:
    @pytest.mark.parametrize("dtype", KINDS)
    @pytest.mark.parametrize("name", FORMS)
    def test_as_litert_expands_it(self, name: str, dtype: npt.DTypeLike) -> None:
        shape, form = FORMS[name]
        array = random(shape, dtype)
        data = densified(array, form)
        _, theirs = litert(data, [np.zeros((1, 1, 4), np.int8)])
        assert np.array_equal(theirs[0], array), "the file means another tensor"
        assert np.array_equal(constant(data, "sparse"), array)

    @given(st.data())
    @settings(max_examples=60)
    def test_every_order_and_cut(self, data: st.DataObject) -> None:
        rank = data.draw(st.integers(1, 4))
        blocks = data.draw(
            st.dictionaries(st.integers(0, rank - 1), st.sampled_from((1, 2, 3)), max_size=rank)
        )
        shape = tuple(blocks.get(axis, 1) * data.draw(st.integers(1, 4)) for axis in range(rank))
        dimensions = rank + len(blocks)
        order = data.draw(st.permutations(range(dimensions)))
        whole = [level for level, row in enumerate(order) if row < rank]
        sparse = data.draw(st.sets(st.sampled_from(whole)))
        array = random(shape, np.int16, data.draw(st.sampled_from((0.0, 0.1, 0.6))))
        file = densified(array, Form(order, tuple(sparse), blocks))
        assert np.array_equal(constant(file, "sparse"), array)

    def test_elements_of_four_bits(self) -> None:
        array = np.clip(random((8, 16)), -8, 7)
        record = read_file(densified(array, ROWS), SCHEMA, "net")
        row = record["subgraphs"][0]["tensors"][2]
        row["type"] = int(TensorType.INT4)
        stored = record["buffers"][row["buffer"]]["data"]
        record["buffers"][row["buffer"]] = {"data": packed(stored)}
        assert np.array_equal(constant(write(record, SCHEMA), "sparse"), array)

    def test_contents_that_others_have_too_stay(self) -> None:
        array = random((8, 16))
        record = read_file(densified(array, ROWS), SCHEMA, "net")
        row = record["subgraphs"][0]["tensors"][2]
        size = record["buffers"][row["buffer"]]["data"].size
        other = {"name": "other", "shape": np.array([size], np.int32), "type": 9}
        record["subgraphs"][0]["tensors"].append({**other, "buffer": row["buffer"]})
        data = write(record, SCHEMA)
        np.testing.assert_array_equal(constant(data, "other"), array[array != 0])
        assert np.array_equal(constant(data, "sparse"), array)

    def test_what_is_written_again_is_dense(self) -> None:
        array = random((8, 16))
        model = read(densified(array, ROWS), "net")
        assert not model.is_as_stored
        again = read(write(model.record, SCHEMA), "net")
        assert again.is_as_stored
        np.testing.assert_array_equal(again.main.tensors[2].values, array)


def _level(at: int, **fields: Any) -> Callable[[Record, Record], None]:
    def change(sparsity: Record, tensor: Record) -> None:
        sparsity["dim_metadata"][at].update(fields)

    return change


def _sparsity(**fields: Any) -> Callable[[Record, Record], None]:
    def change(sparsity: Record, tensor: Record) -> None:
        sparsity.update({name: np.array(row, np.int32) for name, row in fields.items()})

    return change


def _shape(*extents: int) -> Callable[[Record, Record], None]:
    def change(sparsity: Record, tensor: Record) -> None:
        tensor["shape"] = np.array(extents, np.int32)

    return change


def _type(type: TensorType) -> Callable[[Record, Record], None]:
    def change(sparsity: Record, tensor: Record) -> None:
        tensor["type"] = int(type)

    return change


def _ints(*values: int) -> Any:
    return vector("Int32Vector", values)


ONCE = "must traverse 2 dimensions and {} of blocks once each, not {} of 2"
SEGMENTS = "must have 5 segments from 0 on in dimension 1, none smaller than the one before it"
SIZE = "and the other sparse and packed constants must take at most 134217728 bytes"
LONG = _level(1, array_segments=_ints(0, 2, 4, 6, 7), array_indices=_ints(0, 3, 1, 2, 0, 5, 1))
WRONG = {
    "no order": (_sparsity(traversal_order=()), ONCE.format(0, [])),
    "twice": (_sparsity(traversal_order=(0, 0)), ONCE.format(0, [0, 0])),
    "a block more": (_sparsity(block_map=(0,)), ONCE.format(1, [0, 1])),
    "long": (_level(0, dense_size=5), "dimension 0, is sparse, and must have 4 indices, not 5"),
    "negative": (_level(0, dense_size=-4), "must have 4 indices, not -4"),
    "another form": (_level(0, format=2), "must be dense (0) or sparse (1), not 2"),
    "no segments": (_level(1, array_segments=None), "must have segments where it is sparse"),
    "few segments": (_level(1, array_segments=_ints(0, 2, 4)), SEGMENTS),
    "segments that go back": (_level(1, array_segments=_ints(0, 3, 2, 5, 6)), SEGMENTS),
    "segments from 1": (_level(1, array_segments=_ints(1, 2, 4, 5, 6)), SEGMENTS),
    "few indices": (
        _level(1, array_indices=_ints(0, 3)),
        "must have 6 indices in dimension 1, as its segments say, not 2",
    ),
    "an index outside": (
        _level(1, array_indices=_ints(0, 3, 1, 2, 6, 5)),
        "must have indices in 0..5 in dimension 1, not 0..6",
    ),
    "an index before": (
        _level(1, array_indices=_ints(0, 3, 1, 2, -1, 5)),
        "must have indices in 0..5 in dimension 1, not -1..5",
    ),
    "few contents": (
        LONG,
        "must have contents of 7 elements, as its dimensions say, not 6 bytes",
    ),
    "a large shape": (_shape(1 << 14, 1 << 14), SIZE),
    "a negative shape": (_shape(-4, 6), SIZE),
    "text": (
        _type(TensorType.STRING),
        "must be of INT2, INT4, UINT4 or a type of whole bytes, not STRING",
    ),
}


class TestWrongSparsity:
    @pytest.mark.parametrize("name", WRONG)
    def test_refused(self, name: str) -> None:
        change, message = WRONG[name]
        array = np.zeros((4, 6), np.int8)
        array[[0, 0, 1, 1, 2, 3], [0, 3, 1, 2, 0, 5]] = 1
        record = read_file(densified(array, ROWS), SCHEMA, "net")
        tensor = record["subgraphs"][0]["tensors"][2]
        change(tensor["sparsity"], tensor)
        with pytest.raises(MizzenError) as caught:
            read(write(record, SCHEMA), "net.tflite")
        found = caught.value.diagnostic
        assert found.code == "E140"
        assert found.message.startswith('net.tflite: subgraphs[0].tensors[2] "sparse"')
        assert message in found.message

    @pytest.mark.parametrize(
        ("axes", "size", "message"),
        [
            ((1,), 3, "dense blocks along axis 1 of [4, 8], not into blocks of 3"),
            ((1,), 0, "dense blocks along axis 1 of [4, 8], not into blocks of 0"),
            ((2,), 4, "must have blocks of other dimensions of 2 each, not [2]"),
        ],
    )
    def test_blocks(self, axes: tuple[int, ...], size: int, message: str) -> None:
        file = densified(random((4, 8)), Form((0, 1, 2), (1,), {1: 4}))
        record = read_file(file, SCHEMA, "net")
        sparsity = record["subgraphs"][0]["tensors"][2]["sparsity"]
        sparsity["block_map"] = np.array(axes, np.int32)
        sparsity["dim_metadata"][2]["dense_size"] = size
        with pytest.raises(MizzenError) as caught:
            read(write(record, SCHEMA), "net.tflite")
        assert caught.value.diagnostic.code == "E140"
        assert message in caught.value.diagnostic.message

    def test_many_places_of_no_contents(self) -> None:
        """Dense dimensions alone could ask for any memory."""
        record = read_file(densified(np.ones((2, 2), np.int8), Form((0, 1), ())), SCHEMA, "net")
        tensor = record["subgraphs"][0]["tensors"][2]
        tensor["shape"] = np.array([1 << 13, 1 << 13], np.int32)
        for row in tensor["sparsity"]["dim_metadata"]:
            row["dense_size"] = 1 << 13
        with pytest.raises(MizzenError) as caught:
            read(write(record, SCHEMA), "net.tflite")
        assert "must have contents for 1 times 8192 elements in dimension 0, not for 4" in str(
            caught.value
        )


class TestFourBits:
    @pytest.mark.parametrize("type", [TensorType.INT2, TensorType.UINT4])
    def test_other_widths(self, type: TensorType) -> None:
        bits, whole = PACKED_BITS[type], np.dtype(DTYPES[WIDENED[type]])
        low = -(1 << bits - 1) if whole.kind == "i" else 0
        array = np.resize(np.arange(low, low + (1 << bits)), (3, 7)).astype(whole)
        net = NetworkBuilder("packed")
        x = net.tensor("x", (1, 4), np.int8, 0.5)
        net.constant("w", array, 0.5)
        record = read_file(net.finish([x], [x]), SCHEMA, "net")
        tensor = record["subgraphs"][0]["tensors"][1]
        tensor["type"] = int(type)
        all_bits = np.unpackbits(array.view(np.uint8).reshape(-1, 1), axis=1, bitorder="little")
        stored = np.packbits(all_bits[:, :bits].reshape(-1), bitorder="little")
        record["buffers"][tensor["buffer"]] = {"data": stored}
        (_, found) = read(write(record, SCHEMA), "net").main.tensors
        assert found.type is WIDENED[type]
        np.testing.assert_array_equal(found.values, array)

    @pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 8), (7, 3, 3)])
    def test_every_number_in_its_place(self, shape: tuple[int, ...]) -> None:
        array = np.resize(np.arange(-8, 8), shape).astype(np.int8)
        net = NetworkBuilder("packed")
        x = net.tensor("x", (1, 4), np.int8, 0.5)
        net.constant("w", array, 0.5)
        file = with_int4(net.finish([x], [x]), 1)
        (_, tensor) = read(file, "net").main.tensors
        assert tensor.type is TensorType.INT8
        np.testing.assert_array_equal(tensor.values, array)

    def test_contents_that_do_not_fit(self) -> None:
        net = NetworkBuilder("packed")
        x = net.tensor("x", (1, 4), np.int8, 0.5)
        net.constant("w", np.zeros((3, 5), np.int8), 0.5)
        record = read_file(net.finish([x], [x]), SCHEMA, "net")
        record["subgraphs"][0]["tensors"][1]["type"] = int(TensorType.INT4)
        with pytest.raises(MizzenError, match="must have 8 bytes of contents for INT4"):
            read(write(record, SCHEMA), "net.tflite")
