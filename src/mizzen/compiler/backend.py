"""What the rest of Mizzen asks of an NPU family.

A backend joins a target with the front-ends, which know nothing of each other. Whoever needs
something of an NPU asks its backend, never which NPU it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy.typing as npt

from mizzen.compiler.support import Support
from mizzen.diagnostics import Diagnostic, Origin, fail

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact, NpuStep
    from mizzen.compiler.codegen import RegionCompiler
    from mizzen.frontends.tflite import Model, Operator
    from mizzen.report import CompileReport

Array = npt.NDArray[Any]
Origins = dict[int, Origin]
"""Byte offset of a command in its stream to the model's operator."""
ConfigFiles = str | PathLike[str] | Sequence[str | PathLike[str]] | None
ProgressCallback = Callable[[float], None]
"""Called with the seconds that a compilation has taken so far, once it takes long."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a user asks for; what is left out, the backend chooses.

    arena_cache_size  SRAM that the compiler may plan with, in bytes
    target_options    options that only one family has, by name
    """

    accelerator: str
    config: ConfigFiles = None
    system_config: str | None = None
    memory_mode: str | None = None
    optimise: str = "Performance"
    arena_cache_size: int | None = None
    ignore_ops: Sequence[str] = ()
    target_options: Mapping[str, str] = field(default_factory=dict[str, str])

    def refuse_target_options(self, family: str) -> None:
        """Refuse options of one family only, of which this one has none. E225."""
        if self.target_options:
            raise fail(
                "E225",
                f"{family} has no options of its own, and {', '.join(self.target_options)} came",
                help="leave out --target-option",
            )


class Configuration(Protocol):
    """The configuration in force."""

    @property
    def ignore_ops(self) -> tuple[str, ...]:
        """Types of operators that stay on the CPU because the user said so."""
        ...

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is in doubt about it."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data, the accelerator's name among it."""
        ...


class Outcome(Protocol):
    """What a run gives: arrays `[batch, *shape]` in the program's order."""

    @property
    def outputs(self) -> Sequence[Array]:
        """What the program computes."""
        ...

    @property
    def variables(self) -> Sequence[Array]:
        """The next state."""
        ...


class Simulator(Protocol):
    """Executes one program."""

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What there is to know of how it does so: paths whose meaning is only inferred."""
        ...

    def run(self, arrays: Sequence[Array], batch: int) -> Outcome:
        """Infer a batch of arrays `[batch, *shape]`. Raises E6xx or E9xx for faults."""
        ...


class HazardReport(Protocol):
    """What was checked and found of the order of accesses to memory."""

    @property
    def accelerator(self) -> str:
        """The accelerator that was checked for."""
        ...

    @property
    def operations(self) -> int:
        """The number of operations that were checked."""
        ...

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        ...


class Listing(Protocol):
    """A program's commands as text; `stopped_by` says why they end before the stream does."""

    @property
    def stopped_by(self) -> Diagnostic | None:
        """Why the stream cannot be read to its end."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return the listing as JSON-ready data, the commands under ``commands``."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """A block of memory of a program: its number, what it holds, its size."""

    region: int
    holds: str
    size_bytes: int

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {"region": self.region, "holds": self.holds, "size_bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class MappedTensor:
    """A tensor in a block of memory; `role` is input, output or state."""

    name: str
    role: str
    region: int
    offset_bytes: int
    size_bytes: int
    shape: tuple[int, ...]
    dtype: str

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "name": self.name,
            "role": self.role,
            "region": self.region,
            "offset_bytes": self.offset_bytes,
            "size_bytes": self.size_bytes,
            "shape": list(self.shape),
            "dtype": self.dtype,
        }


@dataclass(frozen=True, slots=True)
class ProgramView:
    """A program as one looks at it.

    commands    the number of commands, as far as the stream can be read
    operations  counts of those that start work, by name, most frequent first
    """

    hardware: str
    stream_bytes: int
    commands: int
    operations: Mapping[str, int]
    regions: tuple[MemoryRegion, ...]
    tensors: tuple[MappedTensor, ...]
    listing: Listing


@dataclass(frozen=True, slots=True)
class ConfigurationLine:
    """A part of the configuration in force: a number is one of bytes."""

    label: str
    value: str | int
    is_default: bool = False


C = TypeVar("C", bound=Configuration)


class Backend(ABC, Generic[C]):
    """One NPU family, joined with the front-ends.

    name          as one says it
    code          of the custom operator that stands for a compiled part in a TFLite network
    accelerators  every name that `--accelerator-config` takes for it

    A program's type is the target's own; only its backend looks into it.
    """

    name: str
    code: str
    accelerators: tuple[str, ...]

    @abstractmethod
    def resolve(self, asked: CompileOptions) -> C:
        """Return the configuration in force. Raises E2xx for what cannot be."""

    @abstractmethod
    def shown(self, configuration: C) -> Iterable[ConfigurationLine]:
        """Say which configuration is in force, and what of it nobody asked for."""

    @abstractmethod
    def artifact_name(self, stem: str, ending: str) -> str:
        """Name the artifact of a network called `stem`."""

    @abstractmethod
    def compile_tflite(
        self, model: Model, data: bytes, configuration: C, on_progress: ProgressCallback | None
    ) -> Artifact:
        """Compile a TFLite network that was read from the file `data`."""

    @abstractmethod
    def compile_tosa(
        self, data: bytes, name: str, configuration: C, on_progress: ProgressCallback | None
    ) -> Artifact:
        """Compile a file's TOSA network, all of which must run on the NPU."""

    @abstractmethod
    def check_tosa(
        self, data: bytes, name: str, configuration: C, on_progress: ProgressCallback | None
    ) -> CompileReport:
        """Place a file's TOSA operators, those that the NPU does not take with their reasons."""

    @abstractmethod
    def region_compiler(self, configuration: C) -> RegionCompiler:
        """Return what compiles regions of tensor graphs."""

    @abstractmethod
    def support(self, config: str | None) -> Support:
        """Return what the family supports; `config` names a file of configurations to list."""

    @abstractmethod
    def write_summary(self, report: CompileReport, configuration: C, folder: Path) -> Path | None:
        """Write the summary file that the family's users know; None where there is none."""

    @abstractmethod
    def step(self, model: Model, operator: Operator, origins: Origins) -> NpuStep:
        """Make the step of a compiled part, a custom operator of an artifact. E12x if damaged."""

    @abstractmethod
    def accelerator_of(self, program: Any) -> str:
        """Name the accelerator that a program is for."""

    @abstractmethod
    def simulator(self, program: Any) -> Any:
        """Plan a program's execution; gives a `Simulator`."""

    @abstractmethod
    def hazards(self, program: Any) -> HazardReport:
        """Find accesses to memory whose order nothing guarantees."""

    @abstractmethod
    def view(self, program: Any) -> ProgramView:
        """Take a program apart to look at it."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A backend, and the configuration in force for it."""

    backend: Backend[Any]
    configuration: Any

    @property
    def accelerator(self) -> str:
        """The accelerator's name."""
        return str(self.configuration.as_dict()["accelerator"])
