"""What to compile for, in the words of ExecuTorch's Arm backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from pathlib import Path

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.generator.options import with_options
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Optimise
from mizzen.targets.ethos_u.machine.system_config import resolve, with_placing
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED
from mizzen.torch.vela_flags import asked, number_of_bytes, require_same

OUTPUT_FORMAT = "vela"

COMMANDS = "COP1"
"""The form of the driver's payload that every released driver takes."""


@dataclass(frozen=True, slots=True)
class VelaExternalBlockPlacements:
    """Where blocks of a delegate's payload go instead of the `.pte`: tags of external files.

    Only `None`, in the `.pte`, is supported: E889 for another.
    """

    cmd_data: str | None = None
    weight_data: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("cmd_data", self.cmd_data), ("weight_data", self.weight_data)):
            if value is not None:
                raise fail(
                    "E889",
                    f"{name} must be in the .pte, and is to be in the file of {value!r}",
                    help="leave it None: a runtime uses the block where the .pte lies, in flash",
                )


class EthosUCompileSpec:
    """An accelerator with its system, memory mode and Vela's options.

    Everything is checked here: E210 for a target that there is not, E2xx for a system, memory mode
    or flag that cannot be. `config_ini` names a `vela.ini`, or several; `extra_flags` are Vela's,
    and `target_options` Mizzen's own, as `mizzen.compile` takes them.

    notes  of flags that have no effect
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
        config_ini: str | PathLike[str] | Sequence[str | PathLike[str]] | None = BUNDLED,
        external_block_placements: VelaExternalBlockPlacements | None = None,
        target_options: Mapping[str, str] | None = None,
    ) -> None:
        self.target = target
        self.system_config = system_config
        self.memory_mode = memory_mode
        self.extra_flags = tuple(extra_flags or ())
        self.config_ini = config_ini
        self.external_block_placements = external_block_placements or VelaExternalBlockPlacements()
        self.target_options = dict(target_options or {})
        self.debug_mode: EthosUCompileSpec.DebugMode | None = None
        self._intermediates: Path | None = None
        given = asked(self.extra_flags)
        self.notes = given.notes
        configuration = _configuration(target, system_config, memory_mode, config_ini, given.values)
        self.configuration: EthosUConfiguration = with_options(configuration, self.target_options)

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

    @staticmethod
    def get_output_format() -> str:
        """Return the format of the code: Vela's."""
        return OUTPUT_FORMAT

    def __repr__(self) -> str:
        return f"EthosUCompileSpec({self.target!r})"


def _configuration(
    target: str,
    system_config: str | None,
    memory_mode: str | None,
    config_ini: str | PathLike[str] | Sequence[str | PathLike[str]] | None,
    flags: Mapping[str, str],
) -> EthosUConfiguration:
    size = flags.get("--arena-cache-size")
    configuration = resolve(
        target,
        config=None if config_ini == BUNDLED else config_ini,
        system_config=system_config,
        memory_mode=memory_mode,
        optimise=flags.get("--optimise", Optimise.PERFORMANCE.value),
        arena_cache_size=None if size is None else number_of_bytes("--arena-cache-size", size),
    )
    own = {
        "--accelerator-config": configuration.accelerator.name,
        "--system-config": configuration.system.name,
        "--memory-mode": configuration.mode.name,
        "--config": configuration.files[0],
        "--output-format": "raw",
        "--cop-format": COMMANDS,
    }
    require_same(flags, own)
    alignment = flags.get("--cpu-tensor-alignment", str(configuration.tensor_alignment_bytes))
    return with_placing(
        configuration,
        flags.get("--tensor-allocator", configuration.tensor_allocator.value),
        number_of_bytes("--cpu-tensor-alignment", alignment),
    )
