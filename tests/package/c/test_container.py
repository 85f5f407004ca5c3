from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.package.c import encode
from mizzen.package.c.apart import constants_apart, model_apart
from mizzen.package.c.header import FILE_NAME, format_header
from mizzen.package.c.layout import FILE, ROWS, ArgumentKind, ElementType, Place, kernel_id
from mizzen.package.c.reader import decode
from mizzen.package.c.writer import number_words
from mizzen.package.device import DeviceProgram, DeviceTensor, NpuCall, State
from mizzen.package.firmware import firmware_folder

from .programs import CONFIG, IDENTITY, PAYLOAD, on_npu, quantizing

NPU = (CONFIG, IDENTITY)


def test_the_header_is_made_of_the_layout() -> None:
    committed = (firmware_folder() / "runtime" / FILE_NAME).read_text()
    assert committed == format_header()
    for row in ROWS:
        assert f"}} mz_{row.name}_row;" in committed


def test_calls_of_the_npu_come_back() -> None:
    container = decode(encode(on_npu(), NPU))
    (call,) = container.tables["npu_calls"]
    assert container.block(call["payload_at"], call["payload_bytes"]) == PAYLOAD
    assert container.block(call["weights_at"], call["weights_bytes"]) == bytes(range(40))
    ins = container.pool[call["copies_in"] :][: 2 * call["copies_in_count"]]
    outs = container.pool[call["copies_out"] :][: 2 * call["copies_out_count"]]
    assert (list(ins), list(outs)) == ([0, 0, 2, 64], [1, 16, 2, 64])
    header = container.header
    assert (header["npu_config"], header["npu_id"], header["fast_bytes"]) == (*NPU, 32)
    places = [call["payload_at"], call["weights_at"], call["scratch_at"]]
    assert not any(place % 16 for place in places)


def test_calls_with_equal_constants_have_one_copy_of_them() -> None:
    """Of a network cut in parts each NPU call has all of its constants; another's are another."""
    program = on_npu()
    (call,) = program.calls
    assert isinstance(call, NpuCall)
    constants = bytes(range(256)) * 64
    calls = [replace(call, read_only=held) for held in (constants, constants, constants[:-1])]
    container = decode(encode(replace(program, calls=tuple(calls)), NPU))
    rows = container.tables["npu_calls"]
    assert rows[0]["weights_at"] == rows[1]["weights_at"] != rows[2]["weights_at"]
    assert [container.block(row["weights_at"], row["weights_bytes"]) for row in rows] == [
        each.read_only for each in calls
    ]
    assert len(container.data) < 2 * len(constants) + 1024


def test_calls_of_kernels_come_back() -> None:
    container = decode(encode(quantizing(), None))
    names = [row["id"] for row in container.tables["kernels"]]
    assert names == [kernel_id("quantize"), kernel_id("dequantize")]
    call = container.tables["kernel_calls"][0]
    words = container.pool[call["arguments"] :][: 3 * call["argument_count"]]
    rows = [tuple(words[at : at + 3]) for at in range(0, len(words), 3)]
    number = ArgumentKind.NUMBER
    assert rows[0] == (ArgumentKind.TENSOR, 0, 0)
    assert rows[3:] == [
        (number, 1, 0), (number, 2**32 - 128, 2**32 - 1), (number, 127, 0), (number, 0, 0),
    ]  # fmt: skip
    (state,) = container.tables["states"]
    assert container.block(state["initial_at"], 6) == bytes([5] * 6)


def test_tensors_come_back() -> None:
    container = decode(encode(quantizing(), None))
    row = container.tables["tensors"][1]
    assert (row["place"], row["type"], row["bytes"]) == (Place.ARENA, ElementType.INT8, 6)
    assert list(container.pool[row["extents"] :][:2]) == [2, 3]
    scale, point = container.pool[row["scales"] :][:2]
    assert np.array([scale], "<u4").view("<f4") == 0.5
    assert (point, row["scale_count"]) == (3, 1)
    constant = container.tables["tensors"][3]
    assert constant["place"] == Place.CONTAINER
    assert container.block(constant["at"], 4) == np.float32(2).tobytes()


@pytest.mark.parametrize("number", [0, -1, 2**40 + 1, -(2**63)])
def test_integers_have_two_words(number: int) -> None:
    low, high = number_words(number)
    assert int.from_bytes(np.array([low, high], "<u4").tobytes(), "little", signed=True) == number


def test_real_numbers_are_float32() -> None:
    assert number_words(0.1) == (0x3DCCCCCD, 0x3DCCCCCD)


def refused(program: DeviceProgram) -> str:
    with pytest.raises(MizzenError) as caught:
        encode(program, None)
    return str(caught.value)


def test_what_does_not_fit_is_refused() -> None:
    deep = DeviceTensor("deep", (1,) * 9, np.dtype(np.int8))
    program = quantizing()
    assert refused(replace(program, tensors=(*program.tensors, deep))) == (
        "error[E460]: a tensor of a container must have numbers of at most 64 bits and at most 8 "
        "extents, and 'deep' is int8[1, 1, 1, 1, 1, 1, 1, 1, 1]"
    )
    with pytest.raises(MizzenError, match="must be a float32 or an integer of 64 bits, not 'a'"):
        number_words("a")
    far = replace(program.tensors[1], offset_bytes=2**32)
    wide = replace(program, tensors=(program.tensors[0], far, *program.tensors[2:]))
    assert refused(wide) == (
        "error[E460]: tensor.at of a container must fit 32 bits, and is 4294967296\n"
        "  help the container's offsets are of 32 bits; split the network"
    )


def test_contents_must_have_their_size() -> None:
    program = quantizing()
    short = replace(program.tensors[3], data=np.zeros(3, np.float32))
    tensors = (*program.tensors[:3], short, *program.tensors[4:])
    assert refused(replace(program, tensors=tensors)) == (
        "error[E460]: contents of 'scale' must be 4 bytes, not 12"
    )


def states(*pairs: tuple[int, int]) -> DeviceProgram:
    row = DeviceTensor("t", (2,), np.dtype(np.int8))
    kept = tuple(State(read, write, np.zeros(2, np.int8)) for read, write in pairs)
    named = tuple(replace(row, name=f"t{i}") for i in range(4))
    return DeviceProgram("states", None, named, (0,), (3,), (), kept)


def test_a_shift_register_moves_once() -> None:
    container = decode(encode(states((2, 1), (1, 0)), None))
    assert [(row["read"], row["write"]) for row in container.tables["states"]] == [(2, 1), (1, 0)]
    container = decode(encode(states((1, 0), (2, 1)), None))
    assert [(row["read"], row["write"]) for row in container.tables["states"]] == [(2, 1), (1, 0)]


def test_states_in_a_circle_are_refused() -> None:
    assert refused(states((1, 2), (2, 1))) == (
        "error[E462]: states of a device take over one after the other, and 't1' would take over "
        "from others in a circle\n"
        "  help copy the state in the network first"
    )
    assert refused(states((3, 1))) == (
        "error[E462]: states of a device take over one after the other, and 't3' would be given "
        "out before it changes, for a caller\n"
        "  help copy the state in the network first"
    )


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_short_container_is_no_container(keep: int) -> None:
    with pytest.raises(MizzenError, match="E461"):
        decode(encode(quantizing(), None)[:keep])


def with_weights(read_only: bytes) -> DeviceProgram:
    """The program with one NPU call, whose weights are others."""
    whole = on_npu()
    calls = [replace(call, read_only=read_only) if isinstance(call, NpuCall) else call
             for call in whole.calls]  # fmt: skip
    return replace(whole, calls=tuple(calls))


def test_only_constants_come_after_their_start() -> None:
    one, other, longer = (
        encode(with_weights(weights), (CONFIG, IDENTITY))
        for weights in (bytes(40), bytes(range(40)), bytes(60))
    )
    apart = [constants_apart(container) for container in (one, other, longer)]
    assert apart[0].linked == apart[1].linked
    assert apart[0].of == apart[1].of != apart[2].of
    assert apart[0].file != apart[1].file
    assert apart[0].linked + apart[0].file[FILE.size_bytes :] == one


def test_a_file_says_what_it_is_for_and_has_its_checksum() -> None:
    container = encode(on_npu(), (CONFIG, IDENTITY))
    for split in (constants_apart(container), model_apart(container)):
        head = FILE.unpack(split.file, 0)
        assert (head["bytes"], head["of"]) == (len(split.file), split.of)
        covered = split.file[: FILE.size_bytes - 4] + split.file[FILE.size_bytes :]
        assert head["crc"] == zlib.crc32(covered)
    assert model_apart(container).file[FILE.size_bytes :] == container


def test_a_model_is_for_an_interface_whatever_is_between() -> None:
    one, other = (encode(with_weights(bytes(size)), (CONFIG, IDENTITY)) for size in (40, 80))
    assert model_apart(one).of == model_apart(other).of
    assert model_apart(one).of != model_apart(encode(quantizing(), None)).of
