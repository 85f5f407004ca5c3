"""Fixtures of firmware tests: built networks, and what a run of a prebuilt firmware gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from mizzen.emulate import Core, EmulationResult, Options, emulate

from .firmware import ACCELERATOR, BOARD, Build

QEMU = "qemu-system-arm"
Run = Callable[..., EmulationResult]


def need_qemu() -> None:
    """Skip the test where QEMU is missing."""
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not installed")


@pytest.fixture(params=list(Core), ids=lambda core: core.value)
def core(request: pytest.FixtureRequest) -> Core:
    """Each processor in turn; skips the test where it is not installed."""
    chosen: Core = request.param
    if chosen is Core.M55:
        need_qemu()
    return chosen


@pytest.fixture
def run() -> Run:
    """Run a prebuilt firmware: `run(Build("interrupt"), fault=...)`."""

    def start(build: Build, accelerator: str = ACCELERATOR, **changes: object) -> EmulationResult:
        options = replace(Options(seconds=20.0), **changes)
        return emulate(build.prebuilt, BOARD, accelerator, options)

    return start
