"""What the compiler asks of an NPU family.

A backend joins a target with the front-ends, which know nothing of each other. Whoever compiles
for an NPU asks its backend, never which NPU it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mizzen.compiler.options import CompileOptions, Configuration, ConfigurationLine
from mizzen.compiler.support import Support
from mizzen.diagnostics import ProgressCallback

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.codegen import RegionCompiler
    from mizzen.frontends.tflite import Model
    from mizzen.report import CompileReport


C = TypeVar("C", bound=Configuration)


class Backend(ABC, Generic[C]):
    """What makes programs for one NPU family."""

    @abstractmethod
    def resolve(self, options: CompileOptions) -> C:
        """Return the configuration in force. Raises E2xx for what cannot be."""

    @abstractmethod
    def configuration_lines(self, configuration: C) -> Iterable[ConfigurationLine]:
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


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A backend, and the configuration in force for it."""

    backend: Backend[Any]
    configuration: Any

    @property
    def accelerator(self) -> str:
        """The accelerator's name."""
        return str(self.configuration.as_dict()["accelerator"])
