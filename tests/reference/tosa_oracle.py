"""Arm's reference model of TOSA as an oracle: evaluates graphs, one process for each.

The Python that has the tools (the package tosa-tools) is named by MIZZEN_TOSA_PYTHON; without it,
tests skip. The model is taken as a program, since only that takes and gives every element type,
and can compute in float64; a run takes about 4 ms.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.flatbuffer.tosa import TosaType, decode, encode
from mizzen.graph import Array, DType, Graph, Value
from mizzen.package.tosa import write

BF16 = "<V2"
"""What the model calls a bf16 in a NumPy file; NumPy itself would write ``|V2``."""


class OpenResultError(Exception):
    """TOSA leaves open what the result is; what the model says of it."""


class TosaOracle:
    """Arm's reference model, as installed for a Python."""

    def __init__(self, program: Path) -> None:
        self.program = program

    def __call__(
        self, graph: Graph, inputs: Sequence[Array], *, precise: bool = False
    ) -> list[Array]:
        """Return the outputs as `DType.numpy` holds them, or in float64 as `precise` computes them.

        Inputs and outputs that have no name get one. Raises OpenResultError where TOSA leaves the
        result open, AssertionError for a graph that the model does not take.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            takes = [_named(value, f"in{index}") for index, value in enumerate(graph.inputs)]
            gives = [_named(value, f"out{index}") for index, value in enumerate(graph.outputs)]
            (folder / "net.tosa").write_bytes(write(graph))
            for file, value, array in zip(takes, graph.inputs, inputs, strict=True):
                _save(folder / f"{file}.npy", value.dtype, array)
            self._run(folder, takes, gives, precise)
            return [
                _load(folder / f"{file}.npy", value)
                for file, value in zip(gives, graph.outputs, strict=True)
            ]

    def _run(self, folder: Path, takes: list[str], gives: list[str], precise: bool) -> None:
        arguments = ["--tosa_file=net.tosa", f"--precise_mode={int(precise)}"]
        for kind, names in (("ifm", takes), ("ofm", gives)):
            if names:
                arguments.append(f"--{kind}_name={','.join(names)}")
                arguments.append(f"--{kind}_file={','.join(f'{name}.npy' for name in names)}")
        ran = subprocess.run(
            [self.program, *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        said = ran.stderr.strip()
        if "REQUIRE() fails" in said:  # with an exit status of 1, most often
            raise OpenResultError(said)
        assert ran.returncode == 0, said


@cache
def find() -> TosaOracle:
    """Return the oracle; skips the test where there are no tools."""
    python = os.environ.get("MIZZEN_TOSA_PYTHON")
    if not python:
        pytest.skip("no TOSA tools: set MIZZEN_TOSA_PYTHON to a Python that has tosa-tools")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return TosaOracle(Path(ran.stdout.strip(), "bin", "tosa_reference_model"))


def _named(value: Value, name: str) -> str:
    value.name = value.name or name
    return value.name


def _save(file: Path, dtype: DType, array: Array) -> None:
    array = np.ascontiguousarray(array)
    if dtype is not DType.BF16:
        np.save(file, array)
        return
    header: dict[str, Any] = {"descr": BF16, "fortran_order": False, "shape": array.shape}
    with file.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(encode(array, TosaType.BF16).tobytes())


def _load(file: Path, value: Value) -> Array:
    array = np.load(file)
    if array.dtype.kind == "V":
        elements = decode(array.reshape(-1).view(np.uint8), TosaType.BF16, array.size)
        return elements.reshape(value.shape)
    return array.reshape(value.shape)
