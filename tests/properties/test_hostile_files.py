"""Files of every kind with anybody's numbers and texts end in a diagnostic or a result.

Nothing in them is executed, and reading them takes memory in proportion to them.
"""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

import mizzen
from mizzen.artifact.loading import artifact_of
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer.tflite import SCHEMA as TFLITE
from mizzen.flatbuffer.tosa import SCHEMA as TOSA
from mizzen.graph import DType, Graph, TensorType
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.targets.ethos_u.vela_raw import raw

from .hostile import hostile, hostile_archive, hostile_array
from .small import small_network

COUNT = 40
SMALL = small_network()
U55, U85, N78 = "ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple"
LARGEST_BYTES = 1 << 28
"""What a file of some KiB may take: an archive may unpack to half of it."""


def tosa() -> bytes:
    graph = Graph("small")
    b = Builder(graph)
    x = graph.add_input(TensorType((1, 4, 4, 8), DType.INT8), "x")
    graph.set_outputs([b("MAX_POOL2D", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))])
    return write(graph)


def loaded_and_run(data: bytes) -> None:
    artifact = artifact_of(data, "file")
    artifact.run(*(np.zeros((2, *info.shape), info.dtype) for info in artifact.inputs))
    assert isinstance(artifact.hazards, tuple)


def raw_of(data: bytes) -> bytes:
    (step,) = artifact_of(data, "file").steps
    program = step.program  # pyright: ignore[reportAttributeAccessIssue] the step of an NPU
    rows = [None] * len(program.inputs), [None] * len(program.outputs)
    return raw.write(raw.RawModel(program, tuple(rows[0]), tuple(rows[1])))


def compiled(accelerator: str, *ignored: str) -> bytes:
    return mizzen.compile(SMALL, accelerator, ignore_ops=list(ignored)).data


CASES: dict[str, tuple[Callable[[], bytes], Callable[[bytes, Random], bytes],
                       Callable[[bytes], object]]] = {
    "network, Ethos-U": (
        lambda: SMALL, lambda data, chance: hostile(data, TFLITE, chance),
        lambda data: mizzen.check(data, U55),
    ),
    "network, Ethos-N": (
        lambda: SMALL, lambda data, chance: hostile(data, TFLITE, chance),
        lambda data: mizzen.compile(data, N78),
    ),
    "TOSA": (
        tosa, lambda data, chance: hostile(data, TOSA, chance),
        lambda data: mizzen.compile(data, U55),
    ),
    "artifact, U55": (
        lambda: compiled(U55, "RESHAPE"), lambda data, chance: hostile(data, TFLITE, chance),
        loaded_and_run,
    ),
    "artifact, U85": (
        lambda: compiled(U85), lambda data, chance: hostile(data, TFLITE, chance), loaded_and_run,
    ),
    "artifact, N78": (
        lambda: compiled(N78), lambda data, chance: hostile(data, TFLITE, chance), loaded_and_run,
    ),
    "raw archive": (lambda: raw_of(compiled(U55)), hostile_archive, loaded_and_run),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_hostile_files(kind: str) -> None:
    make, attack, use = CASES[kind]
    data = make()
    use(data)
    found: set[str] = set()
    for number in range(COUNT):
        try:
            attacked = attack(data, Random(f"{kind} {number}"))
        except Exception:  # a number that the container has no room for: no such file
            continue
        tracemalloc.start()
        try:
            use(attacked)
        except MizzenError as error:
            found.add(error.diagnostic.code)
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < LARGEST_BYTES, number
    assert len(found) > 1


def test_hostile_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.tflite").write_bytes(compiled(U55))
    file = io.BytesIO()
    np.save(file, np.zeros((1, 6, 5, 3), np.int8))
    for number in range(COUNT):
        (tmp_path / "x.npy").write_bytes(hostile_array(file.getvalue(), Random(number)))
        words = [str(tmp_path / "net.tflite"), "--input", str(tmp_path / "x.npy")]
        assert main(["run", *words, "--output-dir", str(tmp_path)]) != 0
        assert "error[E203]: " in capsys.readouterr().err, number
    assert not (tmp_path / "EXECUTED").exists()
