"""The CMSIS pack of the runtime: complete, valid, and what is in it builds and runs.

MIZZEN_PACK_XSD names PACK.xsd of the Open-CMSIS-Pack specification, for the check of the form.
"""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

import mizzen
from mizzen.boards import find_board
from mizzen.emulate import emulate
from mizzen.export import Request, c_project
from mizzen.package.firmware import write_project

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "firmware" / "runtime"
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
VERSION = mizzen.__version__
SCHEMA = os.environ.get("MIZZEN_PACK_XSD", "")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    path = ROOT / "firmware" / "pack" / "build.py"
    spec = importlib.util.spec_from_file_location("build_pack", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dist(maker: ModuleType, tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    assert maker.main(["--output-dir", str(folder), "--url", "https://example.com/"]) == 0
    return folder


def test_all_that_the_description_names_is_in_the_pack(dist: Path) -> None:
    with zipfile.ZipFile(dist / f"Mizzen.mizzen.{VERSION}.pack") as archive:
        inside = set(archive.namelist())
        pdsc = archive.read("Mizzen.mizzen.pdsc")
    assert pdsc == (dist / "Mizzen.mizzen.pdsc").read_bytes()
    package = ElementTree.fromstring(pdsc)
    named = [file.get("name", "") for file in package.iter("file")]
    licence = package.findtext("license") or ""
    missing = [
        name for name in (*named, licence) if not any(each.startswith(name) for each in inside)
    ]
    assert named
    assert missing == []


def test_every_source_of_the_runtime_is_in_one_component(dist: Path) -> None:
    package = ElementTree.parse(dist / "Mizzen.mizzen.pdsc").getroot()
    sources = [
        file.get("name") for file in package.iter("file") if file.get("category") == "source"
    ]
    written = [f"runtime/{path.relative_to(RUNTIME).as_posix()}" for path in RUNTIME.rglob("*.c")]
    assert sorted(filter(None, sources)) == sorted(written)


def test_conditions_that_are_used_are_there(dist: Path) -> None:
    package = ElementTree.parse(dist / "Mizzen.mizzen.pdsc").getroot()
    there = {condition.get("id") for condition in package.iter("condition")}
    used = {each.get("condition") for each in package.iter() if each.get("condition")}
    assert used == there


def test_the_same_sources_make_the_same_pack(maker: ModuleType) -> None:
    files = maker.pack_files(VERSION, "")
    assert maker.packed(files) == maker.packed(maker.pack_files(VERSION, ""))
    with zipfile.ZipFile(io.BytesIO(maker.packed(files))) as archive:
        assert archive.testzip() is None


def test_the_description_is_of_the_schemas_form(dist: Path) -> None:
    if not Path(SCHEMA).is_file():
        pytest.skip("MIZZEN_PACK_XSD names no PACK.xsd")
    if shutil.which("xmllint") is None:
        pytest.skip("xmllint is not installed")
    words = ["xmllint", "--noout", "--schema", SCHEMA, str(dist / "Mizzen.mizzen.pdsc")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_exported_network_runs_on_the_packs_sources(dist: Path, tmp_path: Path) -> None:
    for tool in ("arm-none-eabi-gcc", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    artifact = mizzen.compile(DIGITS, "ethos-u55-128", prove="off")
    (info,) = artifact.inputs
    request = Request(find_board("corstone300"), inputs=[np.ones(info.shape, info.dtype)])
    folder = tmp_path / "net"
    write_project(c_project(artifact, request).files, folder)
    shutil.rmtree(folder / "runtime")
    with zipfile.ZipFile(dist / f"Mizzen.mizzen.{VERSION}.pack") as archive:
        archive.extractall(folder)
    done = subprocess.run(
        ["make", "-s", "-C", str(folder), "CPU=cortex-m33"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = emulate(folder / "build" / "firmware.elf", "corstone300", "ethos-u55-128")
    assert result.ok, result.failures
