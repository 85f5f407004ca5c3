"""The forms that files of networks have, and how a file of each form is compiled.

Another package adds a form by an entry point of the group `mizzen.frontends` whose object is a
`FrontEnd`. It brings a file into one that Mizzen reads, or lowers it to a tensor graph itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.npu import is_npu, read_network
from mizzen.compiler.backend import ResolvedTarget
from mizzen.diagnostics import ProgressCallback, fail
from mizzen.flatbuffer.tosa import is_tosa
from mizzen.frontends.tflite import Model, require_quantized
from mizzen.report import CompileReport

GROUP = "mizzen.frontends"

EXPORTED = ".pt2"
"""How the names of exported PyTorch programs end."""

Compile = Callable[[bytes, str, ResolvedTarget, ProgressCallback | None], Artifact]
Check = Callable[[bytes, str, ResolvedTarget, ProgressCallback | None], CompileReport]


def compiled_report(
    data: bytes, name: str, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> CompileReport:
    """Check a network by compiling it."""
    report = front_end_of(data, name).compile(data, name, target, on_progress).report
    assert report is not None, "a compilation always reports"
    return report


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A form of files of networks.

    recognises  whether a file's bytes, or its name, are of this form
    compile     compiles a file: its bytes, its name, the target, what is told of progress
    check       says where operators go where not all files that can be checked can be compiled
    """

    name: str
    recognises: Callable[[bytes, str], bool]
    compile: Compile
    check: Check = compiled_report


def front_end_of(data: bytes, name: str) -> FrontEnd:
    """Return the front-end of a file; TFLite's, which says what is wrong, if none knows it."""
    return next((row for row in _front_ends() if row.recognises(data, name)), TFLITE)


def _front_ends() -> Iterator[FrontEnd]:
    yield TOSA
    yield PYTORCH
    yield TFLITE
    yield from _installed()


@cache
def _installed() -> tuple[FrontEnd, ...]:
    return tuple(point.load() for point in entry_points(group=GROUP))


def _compile_exported(
    data: bytes, name: str, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> Artifact:
    from mizzen.compiler.torch.pt2 import compile_exported

    return compile_exported(data, name, target, on_progress)


def _compile_tflite(
    data: bytes, name: str, target: ResolvedTarget, on_progress: ProgressCallback | None
) -> Artifact:
    model = read_network(data, name)
    _require_source(model)
    require_quantized(model)
    return target.backend.compile_tflite(model, data, target.configuration, on_progress)


def _require_source(model: Model) -> None:
    compiled = next((operator for operator in model.main.operators if is_npu(operator)), None)
    if compiled is not None:
        raise fail(
            "E109",
            f"{model.name} must be a network as it was trained, and is already compiled for an NPU",
            origin=model.origin(compiled),
            help="give the original .tflite; `mizzen run` and `mizzen inspect` take compiled ones",
        )


TOSA = FrontEnd(
    "TOSA",
    is_tosa,
    lambda data, name, target, told: target.backend.compile_tosa(
        data, name, target.configuration, told
    ),
    lambda data, name, target, told: target.backend.check_tosa(
        data, name, target.configuration, told
    ),
)
PYTORCH = FrontEnd("PyTorch", lambda data, name: name.endswith(EXPORTED), _compile_exported)
TFLITE = FrontEnd("TFLite", lambda data, name: data[4:8] == b"TFL3", _compile_tflite)
