"""Whether an artifact's file has the bytes that its manifest is of, and what of it changed."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from mizzen.artifact.parts import parts_of
from mizzen.diagnostics import Diagnostic, MizzenError, Severity, fail
from mizzen.report.manifest import (
    DamagedManifestError,
    Manifest,
    NewerManifestError,
    digest_outside,
    find,
    manifest_in,
)

if TYPE_CHECKING:
    from mizzen.artifact.device import Compiled

SHOWN_DIGITS = 12

CHANGED, DAMAGED, NEWER = "W332", "W333", "W334"
JUDGED = {CHANGED: "E681", DAMAGED: "E682", NEWER: "E683"}
"""What a doubt of a file is where artifacts are judged."""

GET_AGAIN = (
    "get the file again, or compile the network again; `mizzen check --artifact` says which part "
    "changed"
)
ELSEWHERE = (
    "what changed is no NPU operator's code and no table of inputs and outputs, but a name, an "
    "operator of the CPU or how the file is put together"
)
"""Where the digests of all parts are right."""


def doubts_of(data: bytes, name: str) -> tuple[Diagnostic, ...]:
    """Say why a file is not what was written, if its manifest shows it; nothing without one."""
    try:
        found = find(data)
    except NewerManifestError as error:
        return (_doubt(NEWER, f"the manifest in {name} {error}", "install a newer Mizzen"),)
    except DamagedManifestError as error:
        return (_doubt(DAMAGED, f"the manifest in {name} {error}", GET_AGAIN),)
    if found is None:
        return ()
    wanted, has = found.manifest, digest_outside(data, found)
    if wanted.bytes != len(data):
        said = f"{name} must have the {wanted.bytes:,} bytes that its manifest is of, and has"
        return (_doubt(CHANGED, f"{said} {len(data):,}", GET_AGAIN),)
    if wanted.file_sha256 != has:
        said = (
            f"{name} must have the bytes that its manifest is of, SHA-256 "
            f"{wanted.file_sha256[:SHOWN_DIGITS]}..., and has others, {has[:SHOWN_DIGITS]}..."
        )
        return (_doubt(CHANGED, said, GET_AGAIN),)
    return ()


def _doubt(code: str, message: str, way_on: str) -> Diagnostic:
    return Diagnostic(code, message, Severity.WARNING, help=way_on)


def written_bytes(data: bytes) -> bytes:
    """Return a file without what follows it: networks in an image end at a multiple of 64 bytes."""
    manifest = manifest_in(data)
    return data if manifest is None else data[: manifest.bytes]


def is_as_written(artifact: Compiled) -> bool:
    """Whether nothing shows that an artifact's file was changed."""
    return not any(doubt.code in JUDGED for doubt in artifact.doubts)


def not_as_written(artifact: Compiled) -> Iterator[Diagnostic]:
    """Return what shows that a file was changed, as what fails: E681 to E683, and where it was."""
    for doubt in artifact.doubts:
        if doubt.code not in JUDGED:
            continue
        message, way_on = doubt.message, doubt.help
        if doubt.code == CHANGED:
            message += f"; {_where(artifact)}"
        if way_on == GET_AGAIN:
            way_on = "get the file again, or compile the network again"
        code = JUDGED[doubt.code]
        yield replace(doubt, code=code, severity=Severity.ERROR, message=message, help=way_on)


def _where(artifact: Compiled) -> str:
    manifest = manifest_in(artifact.data)
    if manifest is None:
        return "where it changed is not known"
    try:
        changed = changed_parts(manifest, artifact.data, artifact.name)
    except MizzenError as error:
        return f"it changed where it cannot be read any more: {error.diagnostic.message}"
    return f"what changed is {' and '.join(changed)}" if changed else ELSEWHERE


def changed_parts(manifest: Manifest, data: bytes, name: str) -> Sequence[str]:
    """Return the parts of a file whose digests are not the manifest's, in words.

    Raises as the readers of its format.
    """
    has = parts_of(data, name)
    changed: list[str] = []
    for place, (wanted, came) in enumerate(zip_longest(manifest.npu, has.npu)):
        if wanted is None or came is None:
            return ["the number of NPU operators"]
        if wanted.stream_sha256 != came.stream_sha256:
            changed.append(f"the command stream of NPU operator {place}")
        if wanted.constants_sha256 != came.constants_sha256:
            changed.append(f"the constants of NPU operator {place}")
    if manifest.tables_sha256 != has.tables_sha256:
        changed.append("the table of inputs and outputs")
    return changed


@contextmanager
def reading(name: str, doubts: Sequence[Diagnostic]) -> Generator[None]:
    """Say of a file that cannot be read that it was changed, where its manifest shows it: E684."""
    try:
        yield
    except MizzenError as error:
        if not doubts:
            raise
        raise fail(
            "E684",
            f"{name} must be as it was written, which its manifest says it is not, and cannot be "
            f"read any more: {error.diagnostic.message}",
            help="get the file again, or compile the network again",
        ) from error
