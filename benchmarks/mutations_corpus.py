"""The sound files that mutations start from: the project makes them all, the same ones every time.

They lie in one folder. Files that need PyTorch, ExecuTorch's reader or Pillow are left out where
these are not installed, and `missing` says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import shutil
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mizzen
from fuzz_networks import network
from mizzen.cli.main import main
from mizzen.package.tflite.builder import NetworkBuilder

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
TARGETS = {
    "u55": ("ethos-u55-128", "u55", "best"),
    "u65": ("ethos-u65-256", "u55", "vela"),
    "u85": ("ethos-u85-256", "u85", ""),
    "n78": ("ethos-n78-4tops-4ple", "n78", ""),
}
"""An accelerator of each kind, the family of random networks for it, and whose code it is."""
RANDOM_NETWORKS = 6
SEED = 7


def make(folder: Path, *left_out: str) -> Path:
    """Make the corpus in a folder, unless it is there already; some steps may be left out."""
    done = folder / "complete"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for step in STEPS:
            if step.__name__.strip("_") not in left_out:
                step(folder)
        done.touch()
    return folder


def missing() -> list[str]:
    """Name what is not installed, whose files no corpus here has."""
    packages = ("torch", "torchao", "PIL", "pydantic", "unicorn")
    return [name for name in packages if importlib.util.find_spec(name) is None]


def dense(shape: tuple[int, ...], dtype: str = "int8") -> bytes:
    """Return a network of one dense layer over an input of any shape."""
    rng = np.random.default_rng(1)
    size = int(np.prod(shape))
    net = NetworkBuilder("dense")
    x = net.tensor("x", shape, dtype, 0.04, 0)
    flat = net.tensor("flat", (1, size), dtype, 0.04, 0)
    weights = net.constant("weights", rng.integers(-127, 128, (4, size), np.int8), 0.006)
    y = net.tensor("y", (1, 4), dtype, 0.1, 0)
    to = net.constant("to", np.array([1, size], np.int32))
    net.operator("RESHAPE", [x, to], [flat], ("ReshapeOptions", {"new_shape": [1, size]}))
    net.operator("FULLY_CONNECTED", [flat, weights, -1], [y], ("FullyConnectedOptions", {}))
    return net.finish([x], [y])


SHAPES = {"dense": (1, 8), "image": (1, 6, 6, 3), "kws": (1, 49, 10, 1), "anomaly": (1, 640)}
"""Inputs of the small networks that data are read for."""


def _networks(folder: Path) -> None:
    shutil.copy(DIGITS / "digits.tflite", folder / "digits.tflite")
    for name, shape in SHAPES.items():
        (folder / f"{name}.tflite").write_bytes(dense(shape))
    (folder / "samples.tflite").write_bytes(dense((1, 64), "int16"))
    for family in ("u55", "u85", "n78"):
        for number in range(RANDOM_NETWORKS):
            (folder / f"{family}-{number}.tflite").write_bytes(network(family, SEED, number))


def _artifacts(folder: Path) -> None:
    for name, (accelerator, family, generator) in TARGETS.items():
        for base in ("digits", f"{family}-4"):
            source = folder / f"{base}.tflite"
            chosen = {"generator": generator} if generator else {}
            artifact = mizzen.compile(source, accelerator, target_options=chosen)
            artifact.save(folder / f"{base}-{name}_{artifact.name.rpartition('_')[2]}")
    mixed = mizzen.compile(
        folder / "digits.tflite", "ethos-u55-128", ignore_ops=["FULLY_CONNECTED"]
    )
    mixed.save(folder / "mixed-u55_vela.tflite")


def _raw(folder: Path) -> None:
    from mizzen.artifact.steps import NpuStep
    from mizzen.targets.ethos_u.vela.raw import raw

    for name in ("u55", "u85"):
        artifact = mizzen.load(folder / f"digits-{name}_vela.tflite")
        (step,) = (step for step in artifact.steps if isinstance(step, NpuStep))
        program = step.program
        rows = tuple(None for _ in program.inputs), tuple(None for _ in program.outputs)
        (folder / f"raw-{name}.npz").write_bytes(raw.write(raw.RawModel(program, *rows)))


def _tosa(folder: Path) -> None:
    from mizzen.frontends.tflite import read
    from mizzen.frontends.tflite.lower import lower
    from mizzen.package.tosa import write

    for base in ("digits", "u85-4", "u55-4"):
        data = (folder / f"{base}.tflite").read_bytes()
        with contextlib.suppress(mizzen.MizzenError):
            graph = lower(read(data, base)).graph
            (folder / f"{base}.tosa").write_bytes(write(graph))


def _torch(folder: Path) -> None:
    if {"torch", "torchao"} & set(missing()):
        return
    from mutations_torch import write_programs

    write_programs(folder)


def _data(folder: Path) -> None:
    rng = np.random.default_rng(2)
    np.save(folder / "dense.npy", rng.integers(-128, 128, (3, 8), np.int8))
    shutil.copy(DIGITS / "six.npy", folder / "digits.npy")
    np.save(folder / "listen.npy", rng.standard_normal((1, 2, 4, 4)).astype(np.float32))
    np.save(folder / "labels.npy", np.array([0, 1, 2]))
    np.savez(
        folder / "dense.npz", x=rng.integers(-128, 128, (3, 8), np.int8), labels=np.array([0, 1, 2])
    )
    (folder / "labels.csv").write_text("label\n0\n1\n2\n")
    samples = folder / "samples"
    samples.mkdir()
    for index in range(3):
        (samples / f"{index}.bin").write_bytes(rng.integers(0, 256, 8, np.uint8).tobytes())
    (folder / "named.csv").write_text("file,label\n0.bin,0\n1.bin,1\n2.bin,2\n")
    (folder / "y_labels.csv").write_text("0.bin,4,0,8,8\n1.bin,4,1,8,8\n2.bin,4,2,8,8\n")
    (folder / "classes.txt").write_text("one\ntwo\nthree\nfour\n")
    for name, count in (("samples", 64), ("kws", 16000), ("anomaly", 12000)):
        with wave.open(str(folder / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(rng.integers(-9000, 9000, count).astype("<i2").tobytes())
    _images(folder)


def _images(folder: Path) -> None:
    if "PIL" in missing():
        return
    from PIL import Image

    pixels = np.random.default_rng(3).integers(0, 256, (6, 6, 3), np.uint8)
    for ending in ("png", "jpg", "bmp", "ppm"):
        Image.fromarray(pixels).save(folder / f"image.{ending}")


def _documents(folder: Path) -> None:
    """Write what the verbs write about an artifact: a baseline, an evaluation, a report."""
    artifact, net = folder / "dense-u55_vela.tflite", folder / "dense.tflite"
    for name in (*SHAPES, "samples"):
        mizzen.compile(folder / f"{name}.tflite", "ethos-u55-128").save(
            folder / f"{name}-u55_vela.tflite"
        )
    _said(
        "compare",
        net,
        "--accelerator-config",
        "ethos-u55-128",
        "--write-baseline",
        folder / "baseline.json",
    )
    data = folder / "dense.npz"
    (folder / "evaluation.json").write_text(_said("evaluate", artifact, "--data", data, "--json"))


def _said(*words: object) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = main([str(word) for word in words])
    if status not in (0, 1):
        raise RuntimeError(f"{words} ended with {status}")
    return out.getvalue()


def _configurations(folder: Path) -> None:
    from mizzen.targets.ethos_u.machine.vela_ini import SYSTEMS

    for path in sorted((ROOT / "src" / "mizzen" / "boards").glob("*.toml")):
        shutil.copy(path, folder / f"board-{path.name}")
    for path in sorted((ROOT / "src" / "mizzen" / "mesh" / "machine" / "machines").glob("*.toml")):
        shutil.copy(path, folder / f"machine-{path.name}")
    (folder / "vela.ini").write_text(SYSTEMS.read_text())


def _meshes(folder: Path) -> None:
    if "pydantic" in missing():
        return
    for name, machine in (("dense", "one"), ("digits", "grid4x4"), ("digits", "ethos-u55-16")):
        with contextlib.suppress(RuntimeError):
            _said("mesh", "map", folder / f"{name}.tflite", "--machine", machine, "-o",
                  folder / f"{name}-{machine}.mesh")  # fmt: skip
    assignment = {"layers": []}
    (folder / "assignment.json").write_text(json.dumps(assignment))


def _firmware(folder: Path) -> None:
    shutil.copy(ROOT / "examples" / "firmware" / "transfer.elf", folder / "transfer.elf")


STEPS: tuple[Callable[[Path], None], ...] = (
    _networks, _artifacts, _raw, _tosa, _torch, _data, _documents, _configurations,
    _meshes, _firmware,
)  # fmt: skip
