"""Mizzen: compile networks for Arm Ethos-U and Ethos-N NPUs, and run the command stream here.

    artifact = mizzen.compile("model.tflite", accelerator="ethos-u55-256")
    scores = artifact.run(images)

The package root is the public interface: five verbs, `compile`, `load`, `run`, `check` and
`quantize_file`, with the types that they return. PyTorch's flow is `mizzen.torch`. The
simulated NPU computes the NPU's own integers, bit for bit.

The verbs are imported when they are first used, so that `import mizzen` costs nothing: a program
that loads an artifact does not load a compiler. The root knows no NPU and no file format.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mizzen.notebook import drawn_by, written_by

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

    from mizzen.analysis.checking.networks import CheckReport, check
    from mizzen.artifact.artifact import Artifact, Session
    from mizzen.artifact.interface import TensorInfo
    from mizzen.artifact.loading import load
    from mizzen.calibration.quantizing import quantize_file
    from mizzen.compiler.compile import compile
    from mizzen.diagnostics import Diagnostic, MizzenError, MizzenWarning

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "CheckReport",
    "Diagnostic",
    "MizzenError",
    "MizzenWarning",
    "Session",
    "TensorInfo",
    "__version__",
    "check",
    "compile",
    "load",
    "quantize_file",
    "run",
]

_HOME = {
    "Artifact": "mizzen.artifact.artifact",
    "CheckReport": "mizzen.analysis.checking.networks",
    "Diagnostic": "mizzen.diagnostics",
    "MizzenError": "mizzen.diagnostics",
    "MizzenWarning": "mizzen.diagnostics",
    "Session": "mizzen.artifact.artifact",
    "TensorInfo": "mizzen.artifact.interface",
    "check": "mizzen.analysis.checking.networks",
    "compile": "mizzen.compiler.compile",
    "load": "mizzen.artifact.loading",
    "quantize_file": "mizzen.calibration.quantizing",
}


def run(
    artifact: str | Path | bytes, *arrays: Any, accelerator: str | None = None, **named: Any
) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], ...]:
    """Load an artifact and infer a batch: `load(artifact, accelerator).run(*arrays, **named)`."""
    from mizzen.artifact.loading import load

    return load(artifact, accelerator).run(*arrays, **named)


def _drawn(thing: object) -> str | None:
    from mizzen.analysis.page.notebook import notebook_html

    return notebook_html(thing)


def _written(thing: object) -> str | None:
    return import_module("mizzen.cli.texts").text_of_result(thing)


drawn_by(_drawn)
written_by(_written)

if not TYPE_CHECKING:  # a type checker must still see a misspelt name

    def __getattr__(name: str) -> object:
        """Import a public name from its module on first use."""
        if name == "torch":
            return import_module("mizzen.torch")
        if name not in _HOME:
            raise AttributeError(f"module 'mizzen' has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
