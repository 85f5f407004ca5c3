"""What is not installed is named, with the way to it."""

from __future__ import annotations

import sys

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.emulate import Core, Options, emulate

from .firmware import ACCELERATOR, BOARD, Build

EXTRA = "\n  help pip install '.[emulate]' in the folder of Mizzen's sources"


def refusal(core: Core) -> str:
    with pytest.raises(MizzenError) as caught:
        emulate(Build("careful").prebuilt, BOARD, ACCELERATOR, Options(core=core))
    return str(caught.value)


def test_without_unicorn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unicorn", None)
    assert refusal(Core.M33) == f"error[E424]: the processor m33 needs Unicorn{EXTRA}"


def test_without_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refusal(Core.M55) == (
        "error[E425]: the processor m55 needs qemu-system-arm\n"
        "  help apt-get install qemu-system-arm"
    )


def test_a_limit_of_instructions_needs_the_processor_that_counts() -> None:
    with pytest.raises(MizzenError) as caught:
        emulate(
            Build("careful").prebuilt, BOARD, ACCELERATOR, Options(core=Core.M55, instructions=1)
        )
    assert str(caught.value) == ("error[E428]: instructions are counted by the processor m33 only")
