"""The prebuilt firmware is what the sources say, where the same compiler is at hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .compilers import CLANG, GCC, check, need
from .firmware import BUILDS, COMPILER, PROGRAMS, SOURCES, Build, configured


def test_prebuilt_files_are_built_of_these_sources(tmp_path: Path) -> None:
    need(GCC)
    said = subprocess.run([GCC, "--version"], check=True, capture_output=True, text=True).stdout
    if said.splitlines()[0] != COMPILER:
        pytest.skip(f"the prebuilt files are by {COMPILER}, here is {said.splitlines()[0]}")
    folder = configured(tmp_path)
    others = [
        build.name
        for build in BUILDS
        if build.make(folder).read_bytes() != build.prebuilt.read_bytes()
    ]
    assert not others, "build them again and commit them"


def test_the_examples_firmware_is_one_of_these(repository: Path) -> None:
    example = repository / "examples" / "firmware" / "transfer.elf"
    assert example.read_bytes() == Build("careful").prebuilt.read_bytes()


@pytest.mark.parametrize("compiler", [GCC, CLANG])
def test_sources_are_clean(compiler: str, tmp_path: Path) -> None:
    need(compiler)
    folder = configured(tmp_path)
    for name in PROGRAMS:
        source = SOURCES / f"{name}.c"
        assert check(compiler, folder, "m33", source, ["-DCONFIG_MACS_LOG2=7u"]) == "", name
