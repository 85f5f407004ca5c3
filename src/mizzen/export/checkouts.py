"""Folders with others' sources, from which a project compiles what it needs and copies nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mizzen.diagnostics import fail


@dataclass(frozen=True, slots=True)
class Checkout:
    """A repository of somebody else.

    variable  of make and CMake, which has the folder
    file      by which a checkout is known
    source    where it comes from
    """

    variable: str
    title: str
    file: str
    source: str


DRIVER = Checkout(
    "DRIVER",
    "ethos-u-core-driver",
    "src/ethosu_driver.c",
    "https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-core-driver",
)

TFLM = Checkout(
    "TFLM",
    "tflite-micro",
    "tensorflow/lite/micro/micro_interpreter.h",
    "https://github.com/tensorflow/tflite-micro",
)

EXECUTORCH = Checkout(
    "EXECUTORCH",
    "executorch",
    "runtime/executor/program.h",
    "https://github.com/pytorch/executorch",
)


def checked(folders: Mapping[Checkout, str | Path]) -> Mapping[str, str]:
    """Return the absolute paths of checkouts by their variables. E469 for one that is none."""
    return {
        checkout.variable: _path(checkout, Path(folder)) for checkout, folder in folders.items()
    }


def _path(checkout: Checkout, folder: Path) -> str:
    option = f"--{checkout.variable.lower()}"
    clone = f"git clone {checkout.source}, and give that folder as {option}"
    if not (folder / checkout.file).is_file():
        came = f"has no {checkout.file}" if folder.is_dir() else "is no folder"
        raise fail(
            "E469",
            f"{option} must name a checkout of {checkout.title}, and {folder} {came}",
            help=clone,
        )
    path = str(folder.resolve())
    if not path.isprintable():
        raise fail(
            "E469",
            f"{option} must name a folder that make can name, and {path!r} has characters that "
            "are not printed",
            help="rename the folder, or reach it through a link",
        )
    return path
