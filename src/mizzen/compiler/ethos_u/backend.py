"""Ethos-U: our own rules; Arm's Vela where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mizzen.analysis.cost.measured import SETTING, in_measured
from mizzen.compiler.backend import Backend, chosen
from mizzen.compiler.levers import Levers
from mizzen.compiler.options import CompileOptions, ConfigurationLine
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.support import Support
from mizzen.diagnostics import MizzenError, ProgressCallback, fail
from mizzen.frontends.tflite import Model
from mizzen.targets import families
from mizzen.targets.ethos_u.generator.options import CHANGES, with_options
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    Feature,
    Generator,
    Optimise,
    Search,
    TensorAllocator,
)
from mizzen.targets.ethos_u.machine.system_config import DEFAULT, resolve

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.compiler.codegen import RegionCompiler
    from mizzen.report import CompileReport
    from mizzen.report.board_figures import BoardFigures
    from mizzen.targets.bounds import Bound

ACCELERATOR = "accelerator"
MAPS_IN_SRAM = "Shared_Sram"
"""The memory mode with constants elsewhere and everything else in SRAM."""
CACHE = "arena_cache_size"
SHOWN_SETTINGS = (
    ("system_config", "system"),
    ("memory_mode", "memory mode"),
    (CACHE, "arena cache"),
    (SETTING, "measured"),
    *((name, name) for name in CHANGES),
)

OF_VELA = (Feature.CASCADING, Feature.BUFFERING)
ON_U85 = (Feature.CHAINING, Feature.FAST_WEIGHTS)
"""Features that a search leaves out: those that only Vela may be told to, and U85's."""


class EthosU(Backend[EthosUConfiguration]):
    """Ethos-U."""

    family = families.ETHOS_U
    suffix = "vela"

    def resolve(self, options: CompileOptions) -> EthosUConfiguration:
        """Return the configuration in force. Raises E2xx for what cannot be."""
        resolved = with_options(self._resolved(options), options.target_options or {})
        if resolved.rewrites:
            from mizzen.compiler.rewrites import require_known

            require_known(resolved.rewrites)
        if options.accelerator is not None:
            return resolved
        settings = (
            replace(row, source=DEFAULT) if row.name == ACCELERATOR else row
            for row in resolved.settings
        )
        return replace(resolved, settings=tuple(settings))

    def _resolved(self, options: CompileOptions) -> EthosUConfiguration:
        return resolve(
            options.accelerator_name,
            config=options.config,
            system_config=options.system_config,
            memory_mode=options.memory_mode,
            optimise=options.optimise,
            arena_cache_size=options.arena_cache_size,
            ignore_ops=options.ignore_ops,
        )

    def on_measured(self, configuration: EthosUConfiguration, board: Board) -> EthosUConfiguration:
        """Return one with the memories of a board as measured."""
        return in_measured(configuration, board)

    def for_one_layer(self, configuration: EthosUConfiguration) -> EthosUConfiguration:
        """Return one with maps in SRAM: a network's first and last maps lie where its arena is."""
        if not configuration.mode.spills:
            return configuration
        try:
            alone = resolve(
                configuration.accelerator.name,
                config=configuration.files,
                system_config=configuration.system.name,
                memory_mode=MAPS_IN_SRAM,
                optimise=configuration.optimise.value,
                ignore_ops=configuration.ignore_ops,
            )
            return replace(alone, system=configuration.system)
        except MizzenError:  # the user's own file has no such mode
            return configuration

    def configuration_lines(
        self, configuration: EthosUConfiguration
    ) -> Iterator[ConfigurationLine]:
        """Say which configuration is in force, and what of it nobody asked for."""
        settings = {setting.name: setting for setting in configuration.settings}
        accelerator, optimise = configuration.accelerator.name, configuration.optimise.value
        is_default = settings[ACCELERATOR].source == DEFAULT
        name = f"{accelerator} (default)" if is_default else accelerator
        yield ConfigurationLine("accelerator", f"{name}, optimise {optimise}")
        for name, label in SHOWN_SETTINGS:
            setting = settings.get(name)
            if setting is not None and not setting.source.startswith("default:"):
                value = int(setting.value) if name == CACHE else str(setting.value)
                yield ConfigurationLine(label, value, setting.source == DEFAULT)
        yield ConfigurationLine("from", ", ".join(configuration.files))

    def choices(self, configuration: EthosUConfiguration) -> dict[str, str]:
        """Return what else was asked for that changes the code, by name; no defaults."""
        own = configuration.generator, configuration.search, configuration.tensor_allocator
        default = Generator.OWN, Search.FAST, TensorAllocator.HILL_CLIMB
        names = "generator", "search", "tensor_allocator"
        return chosen(
            **{
                name: (asked.value,)
                for name, asked, usual in zip(names, own, default, strict=True)
                if asked is not usual
            },
            disabled=[feature.value for feature in configuration.disabled],
            ignore_ops=configuration.ignore_ops,
            rewrites=configuration.rewrites,
        )

    def compile_tflite(
        self,
        model: Model,
        data: bytes,
        configuration: EthosUConfiguration,
        proof: ProofOptions,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a network; what is not taken stays on the CPU."""
        from mizzen.compiler.ethos_u.makers import compile_tflite

        return compile_tflite(model, data, configuration, proof, on_progress)

    def compile_tosa(
        self,
        data: bytes,
        name: str,
        configuration: EthosUConfiguration,
        proof: ProofOptions,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a file's TOSA network, all of which must run on the NPU. E262 with rewrites."""
        _refuse_rewrites(configuration)
        from mizzen.compiler.ethos_u.makers import compile_tosa

        return compile_tosa(data, name, configuration, proof, on_progress)

    def check_tosa(
        self,
        data: bytes,
        name: str,
        configuration: EthosUConfiguration,
        figures: BoardFigures | None,
        on_progress: ProgressCallback | None,
    ) -> CompileReport:
        """Place a file's TOSA operators, those that the NPU does not take with their reasons."""
        from mizzen.compiler.ethos_u.makers import check_tosa

        return check_tosa(data, name, configuration, figures, on_progress)

    def region_compiler(
        self, configuration: EthosUConfiguration, proof: ProofOptions
    ) -> RegionCompiler:
        """Return what compiles regions of tensor graphs. E262 with rewrites."""
        _refuse_rewrites(configuration)
        from mizzen.compiler.ethos_u.makers import region_compiler

        return region_compiler(configuration)

    def tflite_bounds(self, model: Model) -> dict[int, Bound]:
        """Return the bounds of the table of exceptions."""
        from mizzen.compiler.ethos_u.bounds import bounds_of

        return bounds_of(model)

    def support(self, config: str | None) -> Support:
        """Return what the family supports; `config` names a `vela.ini`. E213 to E217."""
        from mizzen.compiler.ethos_u.support import support

        return support(config)

    def levers(self, model: Model | None, configuration: EthosUConfiguration) -> Levers:
        """Return what a search may change: what to try for, features to leave, rewrites."""
        from mizzen.compiler.rewrites import candidates

        is_vela = configuration.generator is Generator.VELA
        is_u85 = configuration.accelerator.arch is Arch.U85
        features = (*(OF_VELA if is_vela else ()), *(ON_U85 if is_u85 else ()))
        rewrites = () if model is None else candidates(model)
        disabled = tuple(row.value for row in features)
        return Levers(tuple(row.value for row in Optimise), disabled, rewrites)

    def summary_file(
        self, report: CompileReport, configuration: EthosUConfiguration
    ) -> tuple[str, bytes]:
        """Return Vela's summary."""
        from mizzen.compiler.ethos_u.summary import summary_file

        return summary_file(report, configuration)


def _refuse_rewrites(configuration: EthosUConfiguration) -> None:
    """Refuse rewrites of a network that they do not know."""
    if configuration.rewrites:
        raise fail(
            "E262",
            "rewrites are of TFLite networks, and this network is not one",
            help="leave out --target-option rewrite",
        )


ETHOS_U = EthosU()
