"""Networks of this folder are compiled by Vela, whatever the NPU."""

from __future__ import annotations

import pytest

from mizzen.compiler.ethos_u import makers
from mizzen.targets.ethos_u.machine.config import Generator


@pytest.fixture(autouse=True)
def _by_vela(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    monkeypatch.setattr(makers, "generator_of", lambda configuration: Generator.VELA)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] any
