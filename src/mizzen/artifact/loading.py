"""Artifacts of files: the file, the report beside it, the accelerator that it must be for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Origins
from mizzen.artifact.reading import contents_from
from mizzen.diagnostics import fail
from mizzen.report import read_sidecar
from mizzen.targets.families import family_for

if TYPE_CHECKING:
    from mizzen.report import CompileReport


def load(path: str | Path, accelerator: str | None = None) -> Artifact:
    """Read an artifact: a compiled `.tflite`, one with nothing for an NPU, or Vela's raw `.npz`.

    `accelerator` asserts which configuration the artifact is for. Raises E1xx for files that are
    not artifacts or are damaged, E113 for another accelerator, E210 for one that there is not.
    """
    if accelerator is not None:
        family_for(accelerator)
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise fail("E110", f"{source} must be a file that can be read: {error.strerror}") from None
    report = read_sidecar(source, data)
    artifact = artifact_of(data, source.name, report, () if report is None else report.origins)
    if accelerator is not None and artifact.accelerator not in (None, accelerator):
        raise fail(
            "E113",
            f"{source.name} must be for {accelerator}, and was compiled for {artifact.accelerator}",
            help=f"compile the network with --accelerator-config {accelerator}",
        )
    return artifact


def artifact_of(
    data: bytes, name: str, report: CompileReport | None = None, origins: Sequence[Origins] = ()
) -> Artifact:
    """Read the bytes of an artifact; `origins` of the NPU operators' streams, in order."""
    return Artifact(data, name, contents_from(data, name, origins), report)
