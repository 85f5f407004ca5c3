"""Ethos-U55, U65 and U85: Vela's core takes whole TFLite and TOSA files, and regions as TOSA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mizzen.compiler.backend import (
    Backend,
    CompileOptions,
    ConfigurationLine,
    HazardReport,
    MappedTensor,
    MemoryRegion,
    Origins,
    ProgramView,
    ProgressCallback,
)
from mizzen.compiler.support import Support
from mizzen.frontends.tflite import Model, NpuOperator, Operator, Tensor, npu_operator
from mizzen.frontends.tflite.npu import CODE
from mizzen.isa import Kind
from mizzen.targets.ethos_u import driver
from mizzen.targets.ethos_u.base_pointers import base_pointers
from mizzen.targets.ethos_u.config import ACCELERATORS, EthosUConfiguration
from mizzen.targets.ethos_u.listing import ProgramListing, list_program
from mizzen.targets.ethos_u.program import Program, RegionIndex, TensorAddress
from mizzen.targets.ethos_u.system_config import resolve

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact, NpuStep
    from mizzen.compiler.ethos_u.regions import TosaRegions
    from mizzen.report import CompileReport
    from mizzen.targets.ethos_u.sim import Simulator

CACHE = "arena_cache_size"
SHOWN_SETTINGS = (
    ("system_config", "system"),
    ("memory_mode", "memory mode"),
    (CACHE, "arena cache"),
)


class EthosU(Backend[EthosUConfiguration]):
    """Ethos-U."""

    name = "Ethos-U"
    code = CODE
    accelerators = tuple(ACCELERATORS)

    def resolve(self, asked: CompileOptions) -> EthosUConfiguration:
        """Return the configuration in force. Raises E2xx for what cannot be."""
        asked.refuse_target_options(self.name)
        return resolve(
            asked.accelerator,
            config=asked.config,
            system_config=asked.system_config,
            memory_mode=asked.memory_mode,
            optimise=asked.optimise,
            arena_cache_size=asked.arena_cache_size,
            ignore_ops=asked.ignore_ops,
        )

    def shown(self, configuration: EthosUConfiguration) -> Iterator[ConfigurationLine]:
        """Say which configuration is in force, and what of it nobody asked for."""
        optimise = configuration.optimise.value
        yield ConfigurationLine(
            "accelerator", f"{configuration.accelerator.name}, optimise {optimise}"
        )
        settings = {setting.name: setting for setting in configuration.settings}
        for name, label in SHOWN_SETTINGS:
            setting = settings.get(name)
            if setting is not None and not setting.source.startswith("default:"):
                value = int(setting.value) if name == CACHE else str(setting.value)
                yield ConfigurationLine(label, value, setting.source == "default")
        yield ConfigurationLine("from", ", ".join(configuration.files))

    def artifact_name(self, stem: str, ending: str) -> str:
        """Name an artifact as Vela does."""
        return f"{stem}_vela{ending}"

    def compile_tflite(
        self,
        model: Model,
        data: bytes,
        configuration: EthosUConfiguration,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a network; what the core does not take stays on the CPU."""
        from mizzen.compiler.ethos_u.tflite import compile_network

        return compile_network(model, data, configuration, on_progress)

    def compile_tosa(
        self,
        data: bytes,
        name: str,
        configuration: EthosUConfiguration,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a file's TOSA network, all of which must run on the NPU."""
        from mizzen.compiler.ethos_u.tosa import compile_tosa

        return compile_tosa(data, name, configuration, on_progress)

    def check_tosa(
        self,
        data: bytes,
        name: str,
        configuration: EthosUConfiguration,
        on_progress: ProgressCallback | None,
    ) -> CompileReport:
        """Place a file's TOSA operators, those that the NPU does not take with their reasons."""
        from mizzen.compiler.ethos_u.tosa_check import check_tosa

        return check_tosa(data, name, configuration, on_progress)

    def region_compiler(self, configuration: EthosUConfiguration) -> TosaRegions:
        """Return what compiles regions of tensor graphs."""
        from mizzen.compiler.ethos_u.regions import TosaRegions

        return TosaRegions(configuration)

    def support(self, config: str | None) -> Support:
        """Return what the family supports; `config` names a `vela.ini`. E213 to E217."""
        from mizzen.compiler.ethos_u.support import support

        return support(config)

    def write_summary(
        self, report: CompileReport, configuration: EthosUConfiguration, folder: Path
    ) -> Path:
        """Write Vela's summary."""
        from mizzen.compiler.ethos_u.vela_summary import write_summary

        return write_summary(report, configuration, folder)

    def step(self, model: Model, operator: Operator, origins: Origins) -> NpuStep:
        """Make the step of Vela's custom operator. E12x, E52x if it is damaged."""
        from mizzen.artifact.artifact import NpuStep, variable_of

        parts = npu_operator(model, operator)
        return NpuStep(
            self,
            _program(model, parts, origins),
            tuple(place.tensor.index for place in parts.inputs),
            tuple(place.tensor.index for place in parts.outputs),
            tuple(variable_of(row.tensor) for row in parts.inputs if row.tensor.variable),
        )

    def accelerator_of(self, program: Program) -> str:
        """Name the accelerator that the driver payload is for."""
        return driver.configuration(program.hardware).accelerator

    def simulator(self, program: Program) -> Simulator:
        """Plan a program's execution."""
        from mizzen.targets.ethos_u.sim import Simulator

        return Simulator(program)

    def hazards(self, program: Program) -> HazardReport:
        """Find accesses that no wait and no block dependency orders."""
        from mizzen.targets.ethos_u.hazards import find_hazards

        return find_hazards(program)

    def view(self, program: Program) -> ProgramView:
        """Take a program apart to look at it."""
        listing = list_program(program)
        return ProgramView(
            hardware=_hardware(program),
            stream_bytes=program.words.nbytes,
            commands=len(listing.lines),
            operations=_operations(listing),
            regions=tuple(_regions(program)),
            tensors=tuple(_tensors(program)),
            listing=listing,
        )


BACKEND = EthosU()


def _program(model: Model, parts: NpuOperator, origins: Origins) -> Program:
    payload = driver.parse(parts.payload)
    sizes = {
        RegionIndex.READ_ONLY: parts.read_only.nbytes,
        RegionIndex.SCRATCH: parts.scratch_bytes,
    }
    if parts.scratch_fast_bytes is not None:
        sizes[RegionIndex.SCRATCH_FAST] = parts.scratch_fast_bytes
    inputs, outputs = (
        tuple(_placement(place.tensor, place.offset_bytes) for place in places)
        for places in (parts.inputs, parts.outputs)
    )
    return Program(
        words=payload.words,
        hardware=payload.hardware,
        region_bytes={int(region): size for region, size in sizes.items()},
        constants={int(RegionIndex.READ_ONLY): parts.read_only},
        inputs=inputs,
        outputs=outputs,
        name=model.name,
        origins=origins,
    )


def _placement(tensor: Tensor, offset_bytes: int) -> TensorAddress:
    dtype = tensor.dtype or np.dtype(np.uint8)
    region = int(RegionIndex.SCRATCH)
    return TensorAddress(tensor.name, tensor.shape, dtype, region, offset_bytes, tensor.variable)


def _operations(listing: ProgramListing) -> dict[str, int]:
    """Count the operation commands by name, those that occur most first."""
    names = [line.name for line in listing.lines if line.kind is Kind.OPERATION]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _hardware(program: Program) -> str:
    hardware = driver.configuration(program.hardware)
    version = ".".join(str(number) for number in hardware.arch_version)
    buffer = "" if hardware.shram_kib is None else f", {hardware.shram_kib} KiB shared buffer"
    return f"{hardware.accelerator}, architecture {version}{buffer}"


def _regions(program: Program) -> Iterator[MemoryRegion]:
    roles = base_pointers(0, 0)
    for region, held in sorted(program.region_bytes.items()):
        yield MemoryRegion(region, roles[region] if region < len(roles) else "-", held)


def _tensors(program: Program) -> list[MappedTensor]:
    """Return the tensors that the operator takes and gives, by address."""
    inputs = [("state" if place.variable else "input", place) for place in program.inputs]
    places = [*inputs, *(("output", place) for place in program.outputs)]
    return [
        MappedTensor(
            place.name, role, place.region, place.offset, place.size_bytes, place.shape,
            str(place.dtype),
        )
        for role, place in sorted(places, key=lambda row: (row[1].region, row[1].offset))
    ]  # fmt: skip
