"""Raw archives: Vela's from both of its cores, ours, and hostile ones."""

from __future__ import annotations

import io
import os
import pickle
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import HardwareId, Program, TensorAddress
from mizzen.targets.ethos_u.vela.raw import raw
from mizzen.targets.ethos_u.vela.raw.archive import ObjectArrayError, read_entries

INT8, UINT8, INT16 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16)

PROGRAM = Program(
    words=np.array([0x0002, 0xFFFF_0000], np.uint32),
    hardware=HardwareId(0x1807, 0x1006_6001),
    region_bytes={0: 32, 1: 4096},
    constants={0: np.arange(32, dtype=np.uint8)},
    inputs=(
        TensorAddress("image", (1, 4, 4, 3), UINT8, 1, 0),
        TensorAddress("state", (1, 16), INT16, 1, 1024, variable=True),
    ),
    outputs=(TensorAddress("classes", (1, 10), INT8, 1, 64),),
    name="net.npz",
)
MODEL = raw.RawModel(
    PROGRAM,
    inputs=(raw.RawQuantization((0.5,), (127,)), None),
    outputs=(raw.RawQuantization((0.25, 0.125), (-128, 0)),),
)


def f32(values: list[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, np.float32)


def i32(values: list[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, np.int32)


def written(**changes: Any) -> bytes:
    """Write MODEL's archive with NumPy, some arrays changed; None leaves one out."""
    with np.load(io.BytesIO(raw.write(MODEL)), allow_pickle=True) as arrays:
        kept = {key: arrays[key] for key in arrays.files} | changes
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in kept.items() if value is not None})
    return file.getvalue()


def same_program(one: Program, other: Program) -> None:
    assert one.words.tolist() == other.words.tolist()
    assert (one.hardware, one.name) == (other.hardware, other.name)
    assert one.region_bytes == other.region_bytes
    assert one.constants.keys() == other.constants.keys()
    for region, data in one.constants.items():
        assert data.tobytes() == other.constants[region].tobytes()
    assert (one.inputs, one.outputs) == (other.inputs, other.outputs)


def test_reading_inverts_writing() -> None:
    again = raw.read(raw.write(MODEL), "net.npz")
    same_program(again.program, PROGRAM)
    assert (again.inputs, again.outputs) == (MODEL.inputs, MODEL.outputs)


def test_writing_is_reproducible() -> None:
    assert raw.write(MODEL) == raw.write(raw.read(raw.write(MODEL), "net.npz"))


def test_numpy_reads_what_is_written() -> None:
    with np.load(io.BytesIO(raw.write(MODEL)), allow_pickle=True) as arrays:
        assert arrays["input_shape"].tolist() == [[1, 1, 1, 4, 4, 3]]
        assert arrays["variable_shape"].tolist() == [[1, 1, 1, 1, 1, 16]]
        assert arrays["output_offset"].tolist() == [64]
        assert arrays["scratch_size"] == 4096
        assert arrays["input_quantization"].tolist() == [
            {"quant_type": "per_tensor", "scale": f32([0.5]), "zero_point": i32([127])}
        ]
        assert driver.parse(arrays["cmd_data"]).hardware == PROGRAM.hardware


def test_an_archive_without_names_is_read_as_vela_means_it() -> None:
    unnamed = {
        f"{kind}_{part}": None
        for kind in ("input", "output", "variable")
        for part in ("name", "dtype", "rank")
    }
    quantization = np.array([{"scale": f32([1]), "zero_point": i32([128])}])
    read = raw.read(written(**unnamed, input_quantization=quantization), "net.npz")
    assert read.program.inputs == (
        TensorAddress("input_0", (1, 1, 1, 4, 4, 3), UINT8, 1, 0),
        TensorAddress("variable_0", (1, 1, 1, 1, 1, 16), INT16, 1, 1024, variable=True),
    )
    assert read.program.outputs == (TensorAddress("output_0", (1, 1, 1, 1, 1, 10), INT8, 1, 64),)
    assert read.inputs == (raw.RawQuantization((1.0,), (128,)), None)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_archives_of_the_compiled_core(
    archive: Callable[[str, str], bytes], accelerator: str
) -> None:
    data = archive("kws_ref_model.tflite", accelerator)
    model = raw.read(data, "kws.npz")
    with np.load(io.BytesIO(data), allow_pickle=True) as arrays:
        assert model.program.constants[0].tobytes() == arrays["weight_data"].tobytes()
        assert model.program.region_bytes[1] == arrays["scratch_size"]
        scale = arrays["input_quantization"][0]["scale"]
        zero_point = arrays["input_quantization"][0]["zero_point"]
    assert model.inputs == (raw.RawQuantization((float(scale[0]),), (int(zero_point[0]),)),)
    assert [item.shape for item in model.program.inputs] == [(1, 1, 1, 49, 10, 1)]
    again = raw.read(raw.write(model), "kws.npz")
    same_program(again.program, model.program)


def test_an_archive_may_say_nothing_of_variables() -> None:
    """As those of Vela 4.0 and 4.1."""
    keys = ("shape", "elem_size", "region", "offset", "quantization", "rank", "name", "dtype")
    data = written(**{f"variable_{key}": None for key in keys})
    assert raw.read(data, "net.npz").program.inputs == PROGRAM.inputs[:1]
    with pytest.raises(MizzenError, match=r"E153.*variable_\w+ must have 0 entries, not 1"):
        raw.read(written(variable_offset=None), "net.npz")


def test_archives_of_the_legacy_core(model_file: Callable[[str], Path], tmp_path: Path) -> None:
    pytest.importorskip("ethosu.regor", reason="Vela is not installed")
    model = model_file("hello_world_int8.tflite")
    options = ["--accelerator-config=ethos-u65-512", "--output-format=raw"]
    options += ["--debug-force-legacy-core", f"--output-dir={tmp_path}"]
    vela = [sys.executable, "-m", "ethosu.vela", str(model), *options]
    subprocess.run(vela, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.npz")
    read = raw.read(file.read_bytes(), file.name)
    assert driver.configuration(read.program.hardware).accelerator == "ethos-u65-512"
    assert [item.size_bytes for item in read.program.inputs] == [1]
    assert read.inputs[0] is not None
    assert read.inputs[0].zero_points == (-128,)


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (self.path,)


def test_pickles_are_not_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    bomb = np.array([{"scale": Bomb(mark), "zero_point": i32([1])}])
    with pytest.raises(MizzenError) as caught:
        raw.read(written(input_quantization=bomb), "net.npz")
    assert str(caught.value) == (
        "error[E155]: input_quantization must be dictionaries as Vela writes them, "
        "but it names posix.mkdir\n"
        "  at   net.npz"
    )
    assert not mark.exists()


WRONG_ENTRIES: list[tuple[object, str]] = [
    ([1], "an entry is no dictionary"),
    ([{"scale": 1}], "a value is not made by _reconstruct"),
    ([{"scale": np.array(["x"], object)}], "a value is no array of numbers"),
    ([{1: f32([1])}], "a dictionary has a key that is no text"),
    ([{"scale": np.float32}], "it names numpy.float32"),
    ([{"scale": 2**80}], "it uses the operation LONG1"),
]


@pytest.mark.parametrize(("entries", "reason"), WRONG_ENTRIES)
def test_other_pickles_are_refused(entries: list[object], reason: str) -> None:
    array = np.empty(len(entries), object)
    array[:] = entries
    with pytest.raises(ObjectArrayError) as caught:
        read_entries(pickle.dumps(array, protocol=4))
    assert str(caught.value) == reason


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_pickles_of_every_numpy_are_read(protocol: int) -> None:
    array = np.array([{"scale": f32([0.5]), "quant_type": "per_tensor"}] * 2)
    if protocol == 2:
        with pytest.raises(ObjectArrayError, match=r"^it names _codecs\.encode$"):
            read_entries(pickle.dumps(array, protocol=protocol))
        return
    entries = read_entries(pickle.dumps(array, protocol=protocol))
    assert entries == [{"scale": f32([0.5]), "quant_type": "per_tensor"}] * 2


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 30))
def test_any_pickle_is_read_or_refused(junk: bytes, at: int, cut: int) -> None:
    array = np.array([{"scale": f32([0.5]), "zero_point": i32([1])}])
    pickled = pickle.dumps(array, protocol=4)
    for data in (junk, pickled[:at] + junk + pickled[at + cut :]):
        try:
            entries = read_entries(data)
        except ObjectArrayError:
            continue
        assert isinstance(entries, list)


WRONG_ARCHIVES: list[tuple[dict[str, Any], str]] = [
    ({"weight_data": None}, "E151]: a raw archive must have the array weight_data, but has none"),
    (
        {"cmd_data": np.zeros((2, 2), np.complex64)},
        "E152]: cmd_data must hold numbers or text, not '<c8'",
    ),
    (
        {"input_offset": np.zeros((2, 2), order="F")},
        "E152]: input_offset must be a row-major array in NumPy's format, but is damaged",
    ),
    ({"scratch_size": [1, 2]}, "E153]: scratch_size must be one integer, not 2"),
    ({"scratch_size": 1.5}, "E153]: scratch_size must hold signed integers, not float64"),
    ({"input_region": [1, 1]}, "E153]: input_region must have 1 entries, not 2"),
    (
        {"input_shape": [1, 2, 3]},
        "E153]: input_shape must be a table of 1 shapes, not of shape [3]",
    ),
    ({"input_rank": [2]}, "E153]: input_rank must fit [1, 1, 1, 4, 4, 3], not be 2"),
    ({"input_rank": [7]}, "E153]: input_rank must fit [1, 1, 1, 4, 4, 3], not be 7"),
    ({"input_name": ["a", "b"]}, "E153]: input_name must have 1 entries, not 2"),
    ({"input_name": [1]}, "E153]: input_name must be a list of texts, not int64"),
    (
        {"input_name": ["\x1b[2J"]},
        "E153]: input_name must be a list of texts, but has other characters",
    ),
    (
        {"input_name": np.full(1, 0x7FFFFFFF, np.uint32).view("<U1")},
        "E153]: input_name must be a list of texts, but has other characters",
    ),
    (
        {"scratch_size": -1},
        "E154]: scratch_size must be in 0..4294967296 bytes, not -1",
    ),
    (
        {"scratch_size": 1 << 40},
        "E154]: scratch_size must be in 0..4294967296 bytes, not 1099511627776",
    ),
    (
        {"input_shape": [[1, 1, 1, 4, 0, 3]]},
        "E154]: input_shape must be positive and fit in a region, not [1, 1, 1, 4, 0, 3]",
    ),
    (
        {"input_shape": [[1, 1, 2**31, 2**31, 4, 1]]},
        "E154]: input_shape must be positive and fit in a region, "
        "not [1, 1, 2147483648, 2147483648, 4, 1]",
    ),
    ({"input_elem_size": [3]}, "E154]: input_elem_size must be 1, 2, 4 or 8 bytes, not 3"),
    ({"input_dtype": ["i4"]}, "E154]: input_dtype must be a type of 1 bytes, not 'i4'"),
    (
        {"input_quantization": np.array([{}])},
        "E155]: input_quantization must have a scale and a zero point in each entry",
    ),
    (
        {"input_quantization": np.array([{"scale": i32([1]), "zero_point": i32([1])}])},
        "E155]: input_quantization must have real scales and integer zero points",
    ),
    (
        {"input_quantization": np.array([{"scale": f32([]), "zero_point": i32([1])}])},
        "E155]: input_quantization must have as many zero points as scales",
    ),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_ARCHIVES)
def test_what_is_wrong_with_an_archive(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        raw.read(written(**changes), "net.npz")
    assert str(caught.value) == f"error[{message}\n  at   net.npz"


def test_what_is_wrong_with_its_memory() -> None:
    with pytest.raises(MizzenError) as caught:
        raw.read(written(input_offset=[4090]), "net.npz")
    assert str(caught.value) == (
        'error[E541]: input "image" must lie inside the 4096 bytes of region 1, not at 4090..4138'
    )
    with pytest.raises(MizzenError) as caught:
        raw.read(written(weight_region=9), "net.npz")
    assert str(caught.value) == "error[E540]: a region must be in 0..7, not 9"


def test_what_is_no_archive() -> None:
    with pytest.raises(MizzenError) as caught:
        raw.read(b"TFL3", "net.npz")
    assert str(caught.value) == (
        "error[E150]: a raw archive must be a NumPy archive (.npz), and cannot be unpacked: "
        "File is not a zip file\n"
        "  at   net.npz"
    )


def test_an_archive_that_unpacks_to_too_much() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cmd_data.npy", bytes(1 << 28))
    data = file.getvalue()
    with pytest.raises(MizzenError) as caught:
        raw.read(data, "net.npz")
    most = (1 << 27) + 32 * len(data)
    assert str(caught.value) == (
        "error[E150]: a raw archive must be a NumPy archive (.npz), and must unpack to at most "
        f"{most} bytes, not {1 << 28}\n  at   net.npz"
    )


def test_damaged_archives_are_read_or_refused() -> None:
    chance = random.Random(7)
    whole = raw.write(MODEL)
    members = zipfile.ZipFile(io.BytesIO(whole)).namelist()
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        read_or_refuse(bytes(damaged[: chance.choice([None, chance.randrange(len(damaged))])]))
    for _ in range(300):
        read_or_refuse(with_damaged_member(whole, chance.choice(members), chance))


def with_damaged_member(whole: bytes, name: str, chance: random.Random) -> bytes:
    """Flip bits inside a member and store it with a good checksum."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(file, "w") as target:
        for member in source.namelist():
            data = bytearray(source.read(member))
            if member == name:
                for _ in range(chance.randrange(1, 4)):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            target.writestr(member, bytes(data))
    return file.getvalue()


def read_or_refuse(data: bytes) -> None:
    try:
        model = raw.read(data, "net.npz")
    except MizzenError:
        return
    assert len(model.inputs) == len(model.program.inputs)


def test_memory_that_the_format_cannot_say() -> None:
    spread = replace(PROGRAM, region_bytes={0: 32, 1: 4096, 5: 16})
    with pytest.raises(MizzenError) as caught:
        raw.write(raw.RawModel(spread, MODEL.inputs, MODEL.outputs))
    assert str(caught.value) == (
        "error[E156]: a raw archive must have constants in one region and at most two others, "
        "not regions [0, 1, 5]\n"
        "  rule Vela, rawdata_writer.py"
    )
