"""Compile a network: read it, check it, generate code, say where everything went and why."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Unpack

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.frontends import front_end_of
from mizzen.compiler.options import CompileKeywords, CompileOptions
from mizzen.compiler.registry import resolve_target
from mizzen.diagnostics import ProgressCallback, fail
from mizzen.flatbuffer.tflite import BuiltinOperator
from mizzen.flatbuffer.tosa import is_tosa

UNNAMED = "model.tflite"
UNNAMED_TOSA = "model.tosa"
"""What diagnostics call a network that is given as bytes."""


def compile(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    *,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[CompileKeywords],
) -> Artifact:
    """Compile a quantised `.tflite`, `.tosa` or `.pt2` for an NPU; the first two also as bytes.

    `config` names `vela.ini` files, `arena_cache_size` is in bytes, `ignore_ops` are operator
    types to keep on the CPU, `target_options` are those of one family of NPUs; `on_progress` is
    called with the seconds gone by once it takes long. The artifact's `report` says what went
    where and why. Raises E1xx for a file that is not a quantised network, E2xx for a
    configuration that does not exist, E3xx or E9xx if the compiler fails; TOSA operations that no
    NPU operator computes are such a failure.
    """
    chosen = resolve_target(CompileOptions(accelerator, **options))
    data, name = file_of(model)
    return compile_file(data, name, chosen, on_progress)


def compile_file(
    data: bytes, name: str, chosen: ResolvedTarget, on_progress: ProgressCallback | None = None
) -> Artifact:
    """Compile a file's network, whatever form it has, for a configuration."""
    require_known(chosen.configuration.ignore_ops)
    return front_end_of(data, name).compile(data, name, chosen, on_progress)


def file_of(model: str | PathLike[str] | bytes) -> tuple[bytes, str]:
    """Return a model's bytes and what diagnostics call it. E110 for a file that cannot be read."""
    if isinstance(model, bytes):
        return model, UNNAMED_TOSA if is_tosa(model, "") else UNNAMED
    path = Path(model)
    try:
        return path.read_bytes(), path.name
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise fail("E110", f"{path} must be a file that can be read: {reason}") from None


def require_known(kinds: Sequence[str]) -> None:
    """Refuse types of operators to keep on the CPU that TFLite does not have. E222."""
    for kind in kinds:
        if kind not in BuiltinOperator.__members__:
            close = difflib.get_close_matches(kind, BuiltinOperator.__members__, n=1)
            raise fail(
                "E222",
                f"an operator type to keep on the CPU must be one of TFLite's, not {kind!r}",
                help=f"did you mean {close[0]}?" if close else None,
            )
