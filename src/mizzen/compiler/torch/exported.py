"""Exported PyTorch programs: exported from a module, read from ``.pt2`` files."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.torch.call import Call
from mizzen.diagnostics import MizzenError, Origin, ProgressCallback, fail, source_line
from mizzen.quantize import register_operators, require_torch

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

FIRST_LINE_LETTERS = 300

ZIP = b"PK"
"""How an archive begins."""

HARMLESS = "The tensor attributes .* were assigned"
"""PyTorch's recurrent layers hold flat copies of their weights, of which export complains."""


def load_exported(data: bytes, name: str) -> ExportedProgram:
    """Read a `.pt2`. E165 without PyTorch, E160, E164 and E169 as `read_exported`."""
    if not data.startswith(ZIP):
        raise fail(
            "E164",
            f"{name} must be a program that torch.export.save wrote, and is no archive",
            help="a .tflite or .tosa file is for `mizzen compile`; a program is written with "
            "torch.export.save(torch.export.export(model, inputs), path)",
        )
    require_torch()
    from mizzen.frontends.torch.exported_file import read_exported

    register_operators()
    return read_exported(data, name)


def compile_exported(
    data: bytes, name: str, chosen: ResolvedTarget, on_progress: ProgressCallback | None = None
) -> Artifact:
    """Compile a file's program, which must be quantised. E167 for one that is not."""
    from mizzen.compiler.torch.compile import compile_program

    exported, stem = load_exported(data, name), Path(name).stem
    return compile_program(exported, chosen, name=stem, on_progress=on_progress)


def is_converted(model: object) -> bool:
    """Whether a model is a program, exported or still a module, that `convert_pt2e` made."""
    graph: Any = getattr(model, "graph", None)
    nodes: Iterable[Any] = getattr(graph, "nodes", ())
    return any(str(node.target).startswith("quantized_decomposed.") for node in nodes)


def export(model: torch.nn.Module, call: Call, name: str) -> ExportedProgram:
    """Export a model as it is called.

    E163 where its control flow or shapes depend on data, or export fails.
    """
    import torch

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=HARMLESS)
            # Where gradients are off already, parts of a model that switch them off are no regions.
            with capture_lock(), torch.no_grad(), _masks_not_compared():
                return torch.export.export(model, call.positional, call.named)
    except MizzenError:
        raise
    except Exception as error:
        text = str(error)
        raise fail(
            "E163",
            f"PyTorch must be able to export the model: {_summary(text) or type(error).__name__}",
            origin=Origin(model=name, source=_place(error)),
            rule="torch.export",
            help="where a branch or a shape depends on the data, compute both ways and choose with "
            "torch.where, or split the model there",
        ) from error


@contextmanager
def _masks_not_compared() -> Generator[None]:
    """Let PyTorch's transformers apply their mask without looking whether it is a causal one.

    No program can hold that branch on numbers, and the answer is a hint that changes no result.
    Ref: PyTorch, torch.nn.modules.transformer, _detect_is_causal_mask.
    """
    from torch.nn.modules import transformer

    module: Any = transformer
    detect = module._detect_is_causal_mask  # pyright: ignore[reportPrivateUsage] - no other

    def said(mask: object, is_causal: bool | None = None, size: int | None = None) -> bool:
        return is_causal is True

    module._detect_is_causal_mask = said  # pyright: ignore[reportPrivateUsage] - no other
    try:
        yield
    finally:
        module._detect_is_causal_mask = detect  # pyright: ignore[reportPrivateUsage] - no other


def capture_lock() -> Any:
    """Return the lock under which PyTorch captures: torch.export changes classes of all threads."""
    from torch._dynamo import convert_frame

    return convert_frame.compile_lock


def _summary(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:FIRST_LINE_LETTERS] if lines else ""


def _place(error: BaseException) -> str | None:
    """Return the user's line: in the error's own words, or of the innermost frame of theirs."""
    line = source_line(str(error))
    if line is not None:
        return line
    trace: list[str] = []
    current = error.__traceback__
    while current is not None:
        code = current.tb_frame.f_code
        trace.append(f'File "{code.co_filename}", line {current.tb_lineno}, in {code.co_name}')
        current = current.tb_next
    return source_line("\n".join(trace))
