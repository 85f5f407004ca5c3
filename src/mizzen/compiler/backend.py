"""What the compiler asks of an NPU family, and the backend that an accelerator has.

A backend joins a target with the front-ends, which know nothing of each other. Whoever compiles
for an NPU asks its backend, never which NPU it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mizzen.compiler.levers import Levers
from mizzen.compiler.options import CompileOptions, Configuration, ConfigurationLine
from mizzen.compiler.proof.options import DEFAULT, ProofOptions
from mizzen.compiler.source import Extents, checked
from mizzen.compiler.support import Support, SupportTable
from mizzen.diagnostics import Diagnostic, MizzenError, ProgressCallback, fail
from mizzen.targets.families import Family, families, family_for, loaded

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.interface import Array
    from mizzen.boards import Board
    from mizzen.compiler.codegen import RegionCompiler
    from mizzen.frontends.tflite import Model
    from mizzen.report import CompileReport
    from mizzen.report.board_figures import BoardFigures
    from mizzen.targets.bounds import Bound

C = TypeVar("C", bound=Configuration)


class PartMeaning(Protocol):
    """A part of a TFLite network as an NPU computes it."""

    def infer(self, values: Mapping[int, Array], count: int) -> dict[int, Array]:
        """Return the tensors that the part gives, of those that it takes, `[count, *shape]` each.

        E691 for tensors that are not there.
        """
        ...


class NetworkMeaning(Protocol):
    """A TFLite network, of which parts are asked for by the tensors around them."""

    def part(self, takes: Collection[int], gives: Sequence[int]) -> PartMeaning:
        """Return what a part is, by the tensors that it takes and gives. E691 if it is not known.

        No program is asked, so that programs can be judged.
        """
        ...


class Backend(ABC, Generic[C]):
    """What makes programs for one NPU family.

    A family says what its configuration is and what compiles regions of tensor graphs; TFLite
    networks and PyTorch programs then compile. The other methods are for what it does otherwise.

    family  its row of the table of families
    suffix  what the names of its artifacts end with
    """

    family: Family
    suffix: str

    @abstractmethod
    def resolve(self, options: CompileOptions) -> C:
        """Return the configuration in force. Raises E2xx for what cannot be."""

    def for_one_layer(self, configuration: C) -> C:
        """Return a configuration that a layer alone costs about as much in as in its network."""
        return configuration

    @abstractmethod
    def region_compiler(self, configuration: C, proof: ProofOptions) -> RegionCompiler:
        """Return what compiles regions of tensor graphs.

        proof  how much is proved of each region's code by whoever places them
        """

    def on_measured(self, configuration: C, board: Board) -> C:
        """Return a configuration with what was measured of a board, where the family takes it."""
        return configuration

    def configuration_lines(self, configuration: C) -> Iterable[ConfigurationLine]:
        """Say which configuration is in force, and what of it is a default."""
        yield ConfigurationLine("accelerator", str(configuration.as_dict()["accelerator"]))

    def choices(self, configuration: C) -> dict[str, str]:
        """Return what else was asked for that changes the code, by name; no defaults."""
        return chosen(ignore_ops=configuration.ignore_ops)

    def artifact_name(self, stem: str, ending: str) -> str:
        """Return the name of the artifact of a network called `stem`."""
        return f"{stem}_{self.suffix}{ending}"

    def compile_tflite(
        self,
        model: Model,
        data: bytes,
        configuration: C,
        proof: ProofOptions,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a TFLite network that was read from the file `data`, and prove what comes."""
        from mizzen.compiler.tflite import compile_lowered
        from mizzen.frontends.tflite.lower import lower

        compiler = self.region_compiler(configuration, proof)
        name = self.artifact_name(Path(model.name).stem, ".tflite")
        return compile_lowered(
            model, lower(model), compiler, configuration, proof, self.family, name, on_progress
        )

    def compile_tosa(
        self,
        data: bytes,
        name: str,
        configuration: C,
        proof: ProofOptions,
        on_progress: ProgressCallback | None,
    ) -> Artifact:
        """Compile a file's TOSA network, all of which must run on the NPU. E995 if none can."""
        raise self._without_scales(name)

    def check_tosa(
        self,
        data: bytes,
        name: str,
        configuration: C,
        figures: BoardFigures | None,
        on_progress: ProgressCallback | None,
    ) -> CompileReport:
        """Place a file's TOSA operators, those that the NPU does not take with their reasons.

        figures  what a board says of how long they take
        """
        raise self._without_scales(name)

    def tflite_bounds(self, model: Model) -> Mapping[int, Bound]:
        """Return how far tensors of a TFLite network, by index, may be from TFLite Micro's.

        The bounds are documented ones; all other tensors are exact.
        """
        return {}

    def tflite_meaning(self, model: Model, configuration: C) -> NetworkMeaning | None:
        """Return what says what parts of a TFLite network are in this family's own roundings.

        None for a family that computes what TFLite Micro does, but for `tflite_bounds`.
        """
        return None

    def support(self, config: str | None) -> Support:
        """Return what the family supports; `config` names a file of configurations to list."""
        names = self.family.accelerator_names
        rows = tuple((name,) for name in names)
        table = SupportTable(f"Accelerators of {self.family.name}", ("accelerator",), rows)
        return Support({}, (), tuple({"name": name} for name in names), (), (table,))

    def levers(self, model: Model | None, configuration: C) -> Levers | None:
        """Return what a search may change of a compilation; None where there is nothing.

        model  the network, if it is a TFLite one
        """
        return None

    def summary_file(self, report: CompileReport, configuration: C) -> tuple[str, bytes] | None:
        """Return name and contents of the summary that the family's users know; None without."""
        return None

    def _without_scales(self, name: str) -> MizzenError:
        return fail(
            "E995",
            f"{self.family.name} needs the scales of all tensors, and {name} has none: TOSA keeps "
            "only what rescaling makes of them",
            rule="TOSA 1.0, RESCALE",
            help="compile the .tflite or the .pt2 that the file was made of",
        )


def chosen(**values: Sequence[str]) -> dict[str, str]:
    """Return choices of several words as one text each, without those of none."""
    return {name: ",".join(words) for name, words in values.items() if words}


@dataclass(frozen=True, slots=True)
class PlainConfiguration:
    """The configuration of a family of which only the accelerator can be chosen."""

    accelerator: str
    ignore_ops: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {"accelerator": self.accelerator}


class PlainBackend(Backend[PlainConfiguration]):
    """The backend of a family of which only the accelerator can be chosen."""

    def resolve(self, options: CompileOptions) -> PlainConfiguration:
        """Return the configuration in force. E225 for options that the family does not have."""
        options.refuse_target_options(self.family.name)
        return PlainConfiguration(options.accelerator_name.lower(), tuple(options.ignore_ops))


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A backend, the configuration in force for it, and what to prove of what it makes.

    shapes         what the user says of extents that a network leaves open
    board          that it is for; None where none is named
    board_figures  what the board, or a clock that was asked for, says of time; None for neither
    """

    backend: Backend[Any]
    configuration: Any
    proof: ProofOptions = DEFAULT
    shapes: Extents = field(default_factory=Extents)
    board: Board | None = None
    board_figures: BoardFigures | None = None

    @property
    def accelerator(self) -> str:
        """The accelerator's name."""
        return str(self.configuration.as_dict()["accelerator"])


def backends() -> Iterator[Backend[Any]]:
    """Return every backend."""
    return (loaded(family.compiler) for family in families())


def backend_for(accelerator: str) -> Backend[Any]:
    """Return the backend of an accelerator. E210 if there is no accelerator of that name."""
    return loaded(family_for(accelerator).compiler)


def resolve_target(options: CompileOptions) -> ResolvedTarget:
    """Return the backend and the configuration in force.

    Raises E2xx for what cannot be, E197 for shapes that are none, E410 to E414 and E443 for a board
    that is none.
    """
    from mizzen.compiler.board import figures_of

    if options.board is not None:
        return _on_board(options, options.board)
    backend = backend_for(options.accelerator_name)
    resolved = backend.resolve(options)
    figures = figures_of(None, options.accelerator_name, options.clock_hz)
    shapes = checked(options.shapes)
    return ResolvedTarget(backend, resolved, options.proof, shapes, board_figures=figures)


def _on_board(options: CompileOptions, name: str) -> ResolvedTarget:
    from mizzen.boards import find_board
    from mizzen.compiler.board import as_measured, figures_of, on_board, with_memories

    board = find_board(name)
    asked = on_board(options, board)
    backend = backend_for(asked.accelerator_name)
    bundled = replace(asked, config=None, system_config=None, memory_mode=None)
    mode = backend.resolve(bundled).as_dict().get("memory_mode")
    resolved = backend.resolve(with_memories(as_measured(asked, board), board, mode))
    resolved = backend.on_measured(resolved, board)
    figures = figures_of(board, asked.accelerator_name, asked.clock_hz)
    return ResolvedTarget(backend, resolved, asked.proof, checked(asked.shapes), board, figures)
