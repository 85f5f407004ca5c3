"""A fixture for tests of firmware: `emulate_firmware`.

pytest finds it by the entry point; a run that does not use the fixture pays for this file only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from mizzen.emulate.result import EmulationResult
    from mizzen.emulate.run import Options

BOARD, ACCELERATOR = "mizzen_board", "mizzen_accelerator"


class EmulateFirmware(Protocol):
    """What the fixture gives."""

    def __call__(
        self,
        firmware: str | Path,
        options: Options | None = None,
        *,
        board: str | None = None,
        accelerator: str | None = None,
    ) -> EmulationResult:
        """Run firmware and return what it did; board and NPU are the configuration's by default.

        What it wrote and why it is no success is shown with a test that fails.
        """
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `pytest.ini` and `pyproject.toml` may say."""
    parser.addini(BOARD, "the board of the fixture emulate_firmware", default="corstone300")
    parser.addini(ACCELERATOR, "its Ethos-U, such as ethos-u55-128", default="ethos-u55-256")


@pytest.fixture
def emulate_firmware(request: pytest.FixtureRequest) -> EmulateFirmware:
    """Run firmware on an emulated Cortex-M with the NPU simulated."""

    def run(
        firmware: str | Path,
        options: Options | None = None,
        *,
        board: str | None = None,
        accelerator: str | None = None,
    ) -> EmulationResult:
        from mizzen.emulate.run import DEFAULTS, emulate
        from mizzen.escaping import one_line, quoted_lines

        config = request.config
        chosen = str(board or config.getini(BOARD)), str(accelerator or config.getini(ACCELERATOR))
        result = emulate(firmware, *chosen, options or DEFAULTS)
        parts = [quoted_lines(result.output)] if result.output else []
        parts += [diagnostic.render() for diagnostic in (*result.failures, *result.notes)]
        node: pytest.Item = request.node
        node.add_report_section("call", one_line(f"firmware {firmware}"), "\n".join(parts))
        return result

    return run
