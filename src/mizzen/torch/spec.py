"""What to compile for, in the words of ExecuTorch's Arm backend."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.system_config import resolve

OUTPUT_FORMAT = "vela"

FLAGS = {
    "--optimise": "optimise",
    "--arena-cache-size": "arena_cache_size",
}
"""Vela's options that a compile specification takes besides its own arguments."""


class EthosUCompileSpec:
    """An accelerator with its system, memory mode and Vela's options.

    Everything is checked here: E210 for a target that there is not, E2xx for a system, memory mode
    or flag that cannot be. `config_ini` names a `vela.ini`, or several.
    """

    class DebugMode(Enum):
        """What `dump_debug_info` writes about where TOSA operations come from."""

        JSON = "json"
        TOSA = "tosa"

    def __init__(
        self,
        target: str,
        system_config: str | None = None,
        memory_mode: str | None = None,
        extra_flags: Sequence[str] | None = None,
        config_ini: str | PathLike[str] | None = None,
    ) -> None:
        self.target = target
        self.system_config = system_config
        self.memory_mode = memory_mode
        self.extra_flags = tuple(extra_flags or ())
        self.config_ini = config_ini
        self.debug_mode: EthosUCompileSpec.DebugMode | None = None
        self._intermediates: Path | None = None
        self.configuration: EthosUConfiguration = resolve(
            target,
            config=None if config_ini is None else [config_ini],
            system_config=system_config,
            memory_mode=memory_mode,
            **_flags(self.extra_flags),
        )

    def dump_intermediate_artifacts_to(
        self, output_path: str | PathLike[str] | None
    ) -> EthosUCompileSpec:
        """Write every region's TOSA and compiled network into a folder; returns itself.

        Nothing of the folder's name gets into an artifact.
        """
        self._intermediates = None if output_path is None else Path(output_path)
        return self

    def dump_debug_info(self, debug_mode: DebugMode | None) -> EthosUCompileSpec:
        """Write where each TOSA operation comes from; returns itself.

        JSON: a file beside the others. TOSA: in the operations' locations too.
        """
        self.debug_mode = debug_mode
        return self

    def get_intermediate_path(self) -> str | None:
        """Return the folder of intermediate artifacts, if there is one."""
        return None if self._intermediates is None else str(self._intermediates)

    def get_output_format(self) -> str:
        """Return the format of the code: Vela's."""
        return OUTPUT_FORMAT

    def __repr__(self) -> str:
        return f"EthosUCompileSpec({self.target!r})"


def _flags(flags: Sequence[str]) -> dict[str, Any]:
    """Take flags apart: ``--name=value``, or ``--name value`` in one string or two."""
    words = [word for flag in flags for word in flag.replace("=", " ", 1).split()]
    found: dict[str, Any] = {}
    for name, value in zip(words[::2], [*words[1::2], None], strict=False):
        if name not in FLAGS or value is None:
            raise fail(
                "E224",
                f"extra_flags must be some of {', '.join(FLAGS)}, each with a value, not {name!r}",
                help="give system_config, memory_mode and config_ini as arguments of their own",
            )
        found[FLAGS[name]] = _value(name, value)
    return found


def _value(name: str, text: str) -> str | int:
    if name != "--arena-cache-size":
        return text
    if not text.isdecimal():
        raise fail("E224", f"{name} must have a number of bytes, not {text!r}")
    return int(text)
