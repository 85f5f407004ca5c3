"""TFLite networks of one operator, and what the device and the host make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mizzen
from mizzen.export import c_container
from mizzen.flatbuffer import Record
from mizzen.package.tflite.builder import NetworkBuilder

from .runtime_host import Host, built, fuzz

Array = npt.NDArray[Any]
Network = tuple[bytes, list[Array]]
RANDOM = np.random.default_rng(5)


EXTREMES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3.4e38, -1.0, 6.0, 0.5, 2.5)


def numbers(shape: Sequence[int], dtype: str) -> Array:
    """Return random numbers, some of them the extremes of their type."""
    if dtype == "bool":
        return RANDOM.integers(0, 2, shape).astype(np.bool_)
    some = RANDOM.random(shape) < 0.1
    if dtype == "float32":
        real = (RANDOM.standard_normal(shape) * 3).astype(np.float32)
        return np.where(some, RANDOM.choice(np.array(EXTREMES, np.float32), shape), real)
    limits = np.iinfo(dtype)
    span = (max(limits.min, -30000), min(limits.max, 30000))
    whole = RANDOM.integers(*span, shape)
    return np.where(some, RANDOM.choice([limits.min, limits.max], shape), whole).astype(dtype)


Tensor = tuple[Sequence[int], str, float | None, int]


def t(
    shape: Sequence[int], dtype: str = "int8", scale: float | None = 0.1, zero: int = 3
) -> Tensor:
    quantised = None if dtype in ("float32", "int32", "bool") else scale
    return shape, dtype, quantised, zero if dtype == "int8" else 0


def network(
    kind: str,
    inputs: Sequence[Any],
    outputs: Sequence[Tensor],
    options: tuple[str, Record] | None = None,
) -> Network:
    """Return a network of one operator.

    inputs  tensors, constants, or constants with scales and the axis of those
    """
    net = NetworkBuilder()
    places: list[int] = []
    given: list[int] = []
    arrays: list[Array] = []
    for number, row in enumerate(inputs):
        if isinstance(row, np.ndarray):
            places.append(net.constant(f"c{number}", row))
            continue
        if isinstance(row[0], np.ndarray):
            held, scales, axis = row
            places.append(net.constant(f"c{number}", held, scales, axis=axis))
            continue
        shape, dtype, scale, zero = row
        places.append(net.tensor(f"x{number}", shape, dtype, scale, zero))
        given.append(places[-1])
        arrays.append(numbers(shape, dtype))
    made = [net.tensor(f"y{i}", *row[:4]) for i, row in enumerate(outputs)]
    net.operator(kind, places, made, options)
    return net.finish(given, made), arrays


def i32(*values: Any) -> Array:
    return np.array(values, np.int32)


def same_bits(program: Path, network: Network, folder: Path) -> None:
    """The C runtime gives what TensorFlow Lite Micro's kernels give."""
    data, arrays = network
    file = folder / "network.tflite"
    file.write_bytes(data)
    artifact = mizzen.load(file)
    found = artifact.run(*arrays)
    expected = found if isinstance(found, tuple) else (found,)
    with Host(program, c_container(artifact).data) as host:
        assert host.status == 0, (host.status, host.step)
        given = host.run(*arrays)
        assert host.status == 0, (host.status, host.step)
    for one, other in zip(given, expected, strict=True):
        array = np.frombuffer(one, other.dtype).reshape(other.shape)
        np.testing.assert_array_equal(array, other)
        if other.dtype.kind == "f":
            known = ~np.isnan(other)  # a processor gives NaN either sign
            np.testing.assert_array_equal(np.signbit(array[known]), np.signbit(other[known]))


def damage_each(
    families: Iterable[Callable[[np.random.Generator], Network]], folder: Path, times: int
) -> None:
    """Damage a container of each family so many times, under sanitizers."""
    program = built(folder, "clang")
    for seed, family in enumerate(families):
        file = folder / "network.tflite"
        file.write_bytes(family(np.random.default_rng(seed))[0])
        assert sum(fuzz(program, c_container(mizzen.load(file)).data, times, seed)) == times
