"""The C runtime on this machine, under sanitizers, with the simulator as its NPU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.export import c_container
from mizzen.package.c import encode
from mizzen.package.c.apart import constants_apart
from mizzen.package.c.reader import decode
from mizzen.package.device import DeviceProgram
from mizzen.package.firmware import firmware_folder

from .programs import CONFIG, IDENTITY, on_npu, quantizing
from .runtime_host import WARNINGS, Host, built, fuzz, require

CONTAINER = encode(quantizing(), None)
FORMAT, DAMAGED, MEMORY, KERNEL, ARGUMENT, OTHER_NPU, NPU = 1, 2, 3, 4, 5, 6, 7
OTHER_FILE, CHECKSUM = 10, 11


@pytest.fixture(scope="module", params=["gcc", pytest.param("clang", marks=pytest.mark.sweep)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("host"), request.param)


def test_kernels_and_states(program: Path) -> None:
    x = np.array([[-100, -0.25, 0.25], [0.5, 3, 100]], np.float32)
    quantized = np.array([[-64 - 1.5, 0, 0], [0.5, 3, 62]], np.float32)
    first = np.full((2, 3), 1, np.float32)
    with Host(program, CONTAINER) as host:
        found = host.run(x)
        assert found == [quantized.tobytes(), first.tobytes()]
        assert host.run(x) == [quantized.tobytes()] * 2
        host.reset()
        assert host.run(x) == found


def test_memory_must_suffice(program: Path) -> None:
    header = decode(CONTAINER).header
    with Host(program, CONTAINER, arena_bytes=header["arena_bytes"] - 1) as host:
        assert host.status == MEMORY
    held = encode(on_npu(), (CONFIG, IDENTITY))
    with Host(program, held, fast_bytes=31) as host:
        assert host.status == MEMORY


def halved(constant: float) -> DeviceProgram:
    """The program that quantises, with another constant."""
    whole = quantizing()
    tensors = [
        replace(tensor, data=np.array([constant], np.float32)) if tensor.name == "scale" else tensor
        for tensor in whole.tensors
    ]
    return replace(whole, tensors=tuple(tensors))


def test_constants_apart_give_what_the_whole_gives(program: Path) -> None:
    x = np.array([[-100, -0.25, 0.25], [0.5, 3, 100]], np.float32)
    other = encode(halved(4.0), None)
    for container in (CONTAINER, other):
        with (
            Host(program, container) as whole,
            Host(program, CONTAINER, file=constants_apart(container).file) as apart,
        ):
            assert apart.status == 0
            assert apart.run(x) == whole.run(x)
            assert apart.run(x) == whole.run(x)


def test_constants_of_another_program_are_refused(program: Path) -> None:
    held = encode(on_npu(), (CONFIG, IDENTITY))
    with Host(program, CONTAINER, file=constants_apart(held).file) as host:
        assert host.status == OTHER_FILE
    with Host(program, CONTAINER, file=b"") as host:
        assert host.status == FORMAT


def test_a_damaged_file_of_constants_is_refused(program: Path) -> None:
    file = constants_apart(CONTAINER).file
    came: set[int] = set()
    for at in range(0, 8 * len(file), 37):
        damaged = bytearray(file)
        damaged[at // 8] ^= 1 << at % 8
        with Host(program, CONTAINER, file=bytes(damaged)) as host:
            came.add(host.status)
    with Host(program, CONTAINER, file=file[:-1]) as host:
        came.add(host.status)
    assert came == {FORMAT, DAMAGED, OTHER_FILE, CHECKSUM}


def changed(name: str, value: int, data: bytes = CONTAINER) -> bytes:
    words = np.frombuffer(data, "<u4").copy()
    words[list(decode(data).header).index(name)] = value
    return words.tobytes()


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("tensors_at", 2, DAMAGED),
        ("tensors_count", 2**31, DAMAGED),
        ("pool_count", 2**30, DAMAGED),
        ("outputs", 2**32 - 1, DAMAGED),
        ("input_count", 5000, DAMAGED),
        ("steps_count", 100_000, DAMAGED),
    ],
)
def test_a_damaged_header_is_an_error(program: Path, name: str, value: int, status: int) -> None:
    container = changed(name, value)
    host = Host.__new__(Host)
    host.program, host.container = program, container
    host.arena_bytes, host.fast_bytes = 4096, 64
    host.open(decode(CONTAINER).header)
    with host:
        assert host.status == status


def test_damaged_containers_end_as_errors(program: Path) -> None:
    for container in (CONTAINER, encode(on_npu(), (CONFIG, IDENTITY))):
        counts = fuzz(program, container, 400)
        assert sum(counts) == 400
        assert min(counts[0], counts[DAMAGED]) > 0, "some damage does not matter"


@pytest.mark.sweep
def test_many_damaged_containers_end_as_errors(program: Path) -> None:
    for seed, container in enumerate((CONTAINER, encode(on_npu(), (CONFIG, IDENTITY)))):
        assert sum(fuzz(program, container, 50_000, seed)) == 50_000


@pytest.mark.parametrize("accelerator", ["ethos-u55-128"])
def test_a_real_network_gives_the_same(
    program: Path, accelerator: str, model_file: Callable[[str], Path]
) -> None:
    artifact = mizzen.compile(model_file("person_detect.tflite"), accelerator=accelerator)
    (row,) = artifact.inputs
    random = np.random.default_rng(0)
    images = [random.integers(-128, 128, row.shape).astype(np.int8) for _ in range(2)]
    with Host(program, c_container(artifact).data) as host:
        for image in (*images, images[0]):
            expected = artifact.run(image)
            assert isinstance(expected, np.ndarray)
            assert host.run(image) == [expected.tobytes()]
            assert host.status == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc -mcpu=cortex-m55 -mthumb"])
def test_sources_are_clean(compiler: str, tmp_path: Path) -> None:
    name, *target = compiler.split()
    runtime = firmware_folder() / "runtime"
    (tmp_path / "ethosu_driver.h").write_text(DRIVER_HEADER)
    for source in (*sorted(runtime.glob("*.c")), *sorted(runtime.glob("kernels/*.c"))):
        done = subprocess.run(
            [require(name), *target, *WARNINGS, "-Os", f"-I{runtime}", f"-I{tmp_path}",
             f"-I{runtime / 'kernels'}", "-c", str(source), "-o", str(tmp_path / "out.o")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr == "", source.name


DRIVER_HEADER = """
#include <stddef.h>
#include <stdint.h>
struct ethosu_driver;
int ethosu_invoke_v3(struct ethosu_driver *driver, const void *command_stream,
                     const int command_stream_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg);
"""
"""The call that the driver's header declares (Arm Ethos-U core driver 0.16)."""
