"""Exported programs as files, ``.pt2``."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget
from mizzen.diagnostics import ProgressCallback, fail
from mizzen.quantize import register_operators, require_torch

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def load_exported(data: bytes, name: str) -> ExportedProgram:
    """Read a `.pt2`. E164 for a file that is not one, E165 without PyTorch."""
    require_torch()
    with _quiet():
        import torch

        register_operators()
        try:
            return torch.export.load(io.BytesIO(data))
        except Exception as error:
            raise fail(
                "E164",
                f"{name} must be a program that torch.export.save wrote: {_first_line(error)}",
                help="write it with torch.export.save(torch.export.export(model, inputs), path)",
            ) from None


def compile_exported(
    data: bytes, name: str, chosen: ResolvedTarget, on_progress: ProgressCallback | None = None
) -> Artifact:
    """Compile a file's program, which must be quantised. E167 for one that is not."""
    from mizzen.compiler.torch.compile import compile_program

    exported, stem = load_exported(data, name), Path(name).stem
    return compile_program(exported, chosen, name=stem, on_progress=on_progress)


@contextmanager
def _quiet() -> Generator[None]:
    """Keep what PyTorch says about its own files from the user's terminal."""
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
