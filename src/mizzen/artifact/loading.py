"""Artifacts of files: the file, the report beside it, the accelerator that it must be for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.forms import own_ending
from mizzen.artifact.interface import Example, Origins, TensorInfo
from mizzen.artifact.opening import chosen, opened, read_file, unwrapped, with_memory
from mizzen.artifact.reading import contents_from
from mizzen.artifact.verifying import SHOWN_DIGITS, reading
from mizzen.diagnostics import Diagnostic, Severity, fail, warn
from mizzen.embedded.search import Kind, is_carrier, payloads
from mizzen.report import digest_of_other, read_sidecar, sidecar_path
from mizzen.targets.families import family_for

if TYPE_CHECKING:
    from mizzen.report import CompileReport


def load(
    path: str | Path | bytes,
    accelerator: str | None = None,
    *,
    ptd: Sequence[str | Path] = (),
    payload: int | None = None,
) -> Artifact:
    """Read an artifact, a file or its bytes: a compiled `.tflite`, one with nothing for an NPU, a
    `.zip`, `.pte` or `.bpte`, or Vela's raw `.npz`; or a C source or an image that has one in it,
    or a payload of Arm's driver.

    accelerator  the configuration that the artifact must be for
    ptd          files of data of an ExecuTorch program; else they are looked for beside it
    payload      which of the networks in a source or image, where there are several

    Raises E1xx for files that are not artifacts or are damaged, E113 for another accelerator, E210
    for one that there is not, E684 for one that was changed and cannot be read any more. Warns of a
    file that is not what its manifest says (W332 to W334), and of a report beside it that is of
    other bytes (W315).
    """
    if accelerator is not None:
        family_for(accelerator)
    artifact = (
        _of_bytes(path)
        if isinstance(path, bytes)
        else _of_file(Path(path), accelerator, [Path(each) for each in ptd], payload)
    )
    if accelerator is not None and artifact.accelerator not in (None, accelerator):
        raise fail(
            "E113",
            f"{artifact.name} must be for {accelerator}, and was compiled for "
            f"{artifact.accelerator}",
            help=f"compile the network with --accelerator-config {accelerator}",
        )
    warn(artifact.doubts, above=0)
    return artifact


def _of_bytes(data: bytes) -> Artifact:
    held = unwrapped(data, "artifact")
    name = f"artifact{own_ending(held.data)}"
    with reading(name, held.doubts):
        return artifact_of(held.data, name, doubts=held.doubts, examples=held.examples)


def _of_file(
    source: Path, accelerator: str | None, ptd: Sequence[Path], payload: int | None
) -> Artifact:
    """Read a file with the report beside it. E110 for one that cannot be read."""
    from mizzen.artifact.streams import is_mesa

    data = read_file(source)
    if is_mesa(data):
        return load_stream(source, accelerator, {})
    report = read_sidecar(source, data)
    origins = () if report is None else report.origins
    held = opened(source, data, ptd, payload)
    doubts = held.doubts or (tuple(_doubts(source, data)) if report is None else ())
    with reading(source.name, held.doubts):
        return artifact_of(held.data, source.name, report, origins, doubts, held.examples)


def load_stream(
    path: str | Path,
    accelerator: str | None,
    regions: Mapping[int, bytes | int],
    expected: Mapping[int, bytes] | None = None,
    payload: int | None = None,
) -> Artifact:
    """Read a command stream that has no network around it, or what Mesa serialises.

    regions   what each region starts with, or its size
    expected  what regions hold after it, which makes an example of the artifact
    payload   which of those in a C source or an image, where there are several

    Raises as `mizzen.artifact.streams.archive_of`; E188 for a network that is no stream.
    """
    source = Path(path)
    data = _archive(source, accelerator, regions, payload)
    artifact = artifact_of(data, source.name)
    started = [regions.get(_region_of(info)) for info in artifact.inputs]
    inputs = tuple(np.frombuffer(part, np.uint8) for part in started if isinstance(part, bytes))
    if len(inputs) != len(artifact.inputs) or not inputs:
        return artifact
    wanted = [(expected or {}).get(_region_of(info)) for info in artifact.outputs]
    outputs = tuple(np.frombuffer(part, np.uint8) for part in wanted if part is not None)
    return artifact_of(data, source.name, examples=(Example(inputs, outputs),))


def _archive(
    source: Path, accelerator: str | None, regions: Mapping[int, bytes | int], payload: int | None
) -> bytes:
    """Return the archive of a stream that a file is, or that is in it."""
    from mizzen.artifact.streams import archive_of, is_mesa

    data = read_file(source)
    is_inside = not is_mesa(data) and is_carrier(data, source.name)
    held = payloads(data, source.name) if is_inside else ()
    if not held or held[0].data == data:
        return archive_of(data, source.name, accelerator, regions)
    found = chosen(held, source.name, payload)
    if found.kind is not Kind.STREAM:
        raise fail(
            "E188",
            f"{source.name} must have a command stream where regions are given, and this is a "
            f"network with its memory ({found.kind.value})",
            help="leave out --region",
        )
    return with_memory(source, found, accelerator, regions)


def _region_of(info: TensorInfo) -> int:
    """Return the region that an input or output is, as a whole; -1 for another tensor."""
    number = info.name.removeprefix("region_")
    return int(number) if number.isdecimal() and number != info.name else -1


def artifact_of(
    data: bytes,
    name: str,
    report: CompileReport | None = None,
    origins: Sequence[Origins] = (),
    doubts: tuple[Diagnostic, ...] = (),
    examples: tuple[Example, ...] = (),
) -> Artifact:
    """Read the bytes of an artifact; `origins` of the NPU operators' streams, in order."""
    contents = contents_from(data, name, origins)
    return Artifact(data, name, contents, report, doubts, examples=examples)


def _doubts(path: Path, data: bytes) -> Iterator[Diagnostic]:
    """Warn of a report that is of other bytes."""
    digest = digest_of_other(path, data)
    if digest is not None:
        has = hashlib.sha256(data).hexdigest()
        yield Diagnostic(
            "W315",
            f"{sidecar_path(path).name} must be the report of {path.name} beside it, SHA-256 "
            f"{has[:SHOWN_DIGITS]}..., and is of other bytes, {digest[:SHOWN_DIGITS]}...: it is "
            "not used",
            Severity.WARNING,
            help="compile the network again; where the artifact is another compiler's, move the "
            "report away",
        )
