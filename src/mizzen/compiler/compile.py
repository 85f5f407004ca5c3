"""Compile a network: read it, check it, generate code, say where everything went and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Unpack

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import is_npu, read_network
from mizzen.compiler.backend import ResolvedTarget, resolve_target
from mizzen.compiler.cpu_kernels import with_kernel_warnings
from mizzen.compiler.evidence import with_manifest
from mizzen.compiler.folding import folded
from mizzen.compiler.levels import few_levels
from mizzen.compiler.options import CompileKeywords, options_of
from mizzen.compiler.report import with_diagnostics, with_time
from mizzen.compiler.source import Source
from mizzen.compiler.subgraphs import compile_subgraphs, has_several, with_signatures
from mizzen.diagnostics import ProgressCallback, did_you_mean, fail, unreadable, warn
from mizzen.flatbuffer.tflite import BuiltinOperator
from mizzen.flatbuffer.tosa import is_tosa
from mizzen.frontends.foreign import not_read_folder
from mizzen.frontends.tflite import Model, require_quantized
from mizzen.report import CompileReport

UNNAMED = {"TFLite": "model.tflite", "TOSA": "model.tosa", "ONNX": "model.onnx"}
"""What diagnostics call a network that is given as bytes, by the name of its form."""


def compile(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    *,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[CompileKeywords],
) -> Artifact:
    """Compile a quantised `.tflite`, `.onnx`, `.tosa` or `.pt2` for an NPU; all but the last also
    as bytes.

    `config` names `vela.ini` files, `arena_cache_size` is in bytes, `ignore_ops` are operator
    types to keep on the CPU, `target_options` are those of one family of NPUs. `shapes` sets the
    open dimensions of an ONNX network: `{"input": (1, 3, 96, 96)}` or `{"batch": 1}`. A long
    compile calls `on_progress` with the seconds gone by. The artifact's `report` says what went
    where and why; its warnings are Python's too (`mizzen.MizzenWarning`).

    Raises E1xx for a file that is not a quantised network, E2xx for a configuration that does not
    exist, E3xx or E9xx if the compiler fails; TOSA operations that no NPU operator computes are
    such a failure.
    """
    chosen = resolve_target(options_of(accelerator, options, CompileKeywords, compile))
    artifact = compile_file(source_of(model), chosen, on_progress)
    if artifact.report is not None:
        warn(artifact.report.diagnostics, 0)
    return artifact


def compile_file(
    source: Source, chosen: ResolvedTarget, on_progress: ProgressCallback | None = None
) -> Artifact:
    """Compile a file's network, whatever form it has, for a configuration."""
    artifact = front_end_for(source, chosen).compile(source, chosen, on_progress)
    return with_manifest(artifact, chosen, source.data)


def source_of(model: str | PathLike[str] | bytes) -> Source:
    """Return a model's file, and what diagnostics call it.

    E110 for one that cannot be read, E230 for what is neither a path nor bytes.
    """
    if isinstance(model, bytes):
        form = front_end_of(Source(model, ""))
        return Source(model, UNNAMED.get(form.name, UNNAMED[TFLITE.name]))
    _require_path(model)
    path = Path(model)
    try:
        if path.is_dir():
            raise not_read_folder(str(path), frozenset(each.name for each in path.iterdir()))
        return Source(path.read_bytes(), path.name, path.parent)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def _require_path(model: object) -> None:
    if isinstance(model, str | PathLike):
        return
    raise fail(
        "E230",
        "a network must be a file's path or its bytes, and one of type "
        f"{type(model).__name__} came",
        help=_meant(model),
    )


def _meant(model: object) -> str:
    """Say what takes a model that is no file."""
    if not (hasattr(model, "forward") or hasattr(model, "graph_module")):
        return "give str, pathlib.Path or bytes"
    from mizzen.compiler.torch.exported import is_converted

    if is_converted(model):
        return "converted programs are for mizzen.torch.compile_converted(exported, accelerator)"
    return "PyTorch models are for mizzen.torch.compile(model, example_inputs, accelerator)"


def _require_known(kinds: Sequence[str], form: FrontEnd) -> None:
    """Refuse types of operators to keep on the CPU that networks of a form do not have. E222."""
    known = {kind.upper(): kind for kind in form.kinds()} if kinds else {}
    for kind in kinds:
        if kind not in known:
            raise fail(
                "E222",
                f"an operator type to keep on the CPU must be one of {form.operators_of}'s, not "
                f"{kind!r}",
                help=did_you_mean(kind, known.values()),
            )


GROUP = "mizzen.frontends"

EXPORTED = ".pt2"
"""How the names of exported PyTorch programs end."""

Compile = Callable[[Source, ResolvedTarget, ProgressCallback | None], Artifact]


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a network, and what was made of it; None where nothing could run it."""

    report: CompileReport
    artifact: Artifact | None


Check = Callable[[Source, ResolvedTarget, ProgressCallback | None], Checked]


def check_by_compiling(
    source: Source, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> Checked:
    """Check a network by compiling it."""
    made = front_end_of(source).compile(source, target, on_progress)
    artifact = with_manifest(made, target, source.data)
    assert artifact.report is not None, "a compilation always reports"
    return Checked(artifact.report, artifact)


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A form of files of networks.

    recognises    whether a file's bytes, or its name, are of this form; of bytes alone it is empty
    compile       compiles a file for a target, and tells of progress
    check         says where operators go where not all files that can be checked can be compiled
    takes_shapes  whether networks may leave extents open, which the target's `shapes` then say
    kinds         types of operators that networks have, by which some are kept on the CPU
    operators_of  whose these are
    """

    name: str
    recognises: Callable[[bytes, str], bool]
    compile: Compile
    check: Check = check_by_compiling
    takes_shapes: bool = False
    kinds: Callable[[], Iterable[str]] = lambda: BuiltinOperator.__members__
    operators_of: str = "TFLite"


def front_end_of(source: Source) -> FrontEnd:
    """Return the front-end of a file; TFLite's, which says what is wrong, if none knows it."""
    return next(
        (form for form in _front_ends() if form.recognises(source.data, source.name)), TFLITE
    )


def front_end_for(source: Source, target: ResolvedTarget) -> FrontEnd:
    """Return the front-end of a file, for what a target asks of it.

    E197 for shapes where files have no open extents, E222 for types of operators to keep on the CPU
    that there are not.
    """
    form = front_end_of(source)
    _require_known(target.configuration.ignore_ops, form)
    if target.shapes and not form.takes_shapes:
        raise fail(
            "E197",
            f"shapes are for ONNX networks, which may leave extents open, and {source.name} is "
            f"not one: {', '.join(target.shapes)}",
            help="leave out --shape",
        )
    return form


def _front_ends() -> Iterator[FrontEnd]:
    yield TFLITE
    yield TOSA
    yield PYTORCH
    yield ONNX
    yield from _installed()


@cache
def _installed() -> tuple[FrontEnd, ...]:
    from importlib.metadata import entry_points  # takes longer than all of this module

    return tuple(point.load() for point in entry_points(group=GROUP))


def _compile_exported(
    source: Source, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> Artifact:
    from mizzen.compiler.torch.exported import compile_exported

    return compile_exported(source.data, source.name, target, on_progress)


def _is_onnx(data: bytes, name: str) -> bool:
    from mizzen.frontends.onnx.recognising import is_onnx

    return is_onnx(data, name)


def _onnx_kinds() -> Iterable[str]:
    from mizzen.frontends.onnx.operators import OPERATORS

    return (kind for _, kind in OPERATORS)


def _compile_onnx(
    source: Source, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> Artifact:
    from mizzen.compiler.onnx.compile import compile_onnx

    return compile_onnx(source, target, on_progress)


def _compile_tflite(
    source: Source, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> Artifact:
    data, name = source.data, source.name
    model = read_network(data, name)
    require_source(model)
    require_quantized(model)

    def compile_one(model: Model, data: bytes) -> Artifact:
        network = folded(model, data)
        artifact = target.backend.compile_tflite(
            network.model, network.data, target.configuration, target.proof, on_progress
        )
        return network.in_terms_of_given(artifact)

    if has_several(model):
        artifact_name = target.backend.artifact_name(source.stem, ".tflite")
        artifact = compile_subgraphs(model, artifact_name, target.configuration, compile_one)
    else:
        artifact = compile_one(model, data)
        if model.signatures:
            artifact = with_signatures(artifact, model)
    timed = with_time(artifact, target.board_figures)
    said = few_levels(model)
    return with_diagnostics(with_kernel_warnings(timed, model), said)


def require_source(model: Model) -> None:
    """Refuse a network that is compiled for an NPU already. E109."""
    operators = (
        (operator, subgraph) for subgraph in model.subgraphs for operator in subgraph.operators
    )
    compiled = next(
        ((operator, subgraph) for operator, subgraph in operators if is_npu(operator)), None
    )
    if compiled is not None:
        raise fail(
            "E109",
            f"{model.name} must be a network as it was trained, and is already compiled for an NPU",
            origin=model.origin(*compiled),
            help="give the original .tflite; `mizzen check --artifact`, `mizzen run` and "
            "`mizzen inspect` take compiled ones",
        )


TOSA = FrontEnd(
    "TOSA",
    is_tosa,
    lambda source, target, told: with_time(
        target.backend.compile_tosa(
            source.data, source.name, target.configuration, target.proof, told
        ),
        target.board_figures,
    ),
    lambda source, target, told: Checked(
        target.backend.check_tosa(
            source.data, source.name, target.configuration, target.board_figures, told
        ),
        None,
    ),
)
PYTORCH = FrontEnd("PyTorch", lambda data, name: name.endswith(EXPORTED), _compile_exported)
ONNX = FrontEnd(
    "ONNX",
    _is_onnx,
    _compile_onnx,
    takes_shapes=True,
    kinds=_onnx_kinds,
    operators_of="ONNX",
)
TFLITE = FrontEnd("TFLite", lambda data, name: data[4:8] == b"TFL3", _compile_tflite)
