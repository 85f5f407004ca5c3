"""The manifest of an artifact as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mizzen.cli.layout import count, fields

if TYPE_CHECKING:
    from mizzen.report.manifest import Manifest

SHOWN_DIGITS = 12
"""Of a digest; the JSON document has all."""


def manifest_text(manifest: Manifest, *, width: int) -> str:
    """Say what an artifact's file says of itself."""
    return f"Manifest\n{fields(list(_rows(manifest)), width=width)}"


def _rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    facts = manifest.facts
    code = f", code for the NPU by {facts.compiler}" if manifest.npu else ""
    yield "written by", f"{facts.tool}{code}"
    source = f", {_digest(facts.source.sha256)}" if facts.source.sha256 else ""
    yield "network", f"{facts.source.name}{source}"
    named = (f"{name} {_shortened(name, value)}" for name, value in facts.configuration.items())
    yield "configuration", ", ".join(named)
    yield "file", f"{count(manifest.bytes, 'byte')}, {_digest(manifest.file_sha256)}"
    yield "tables", _digest(manifest.tables_sha256)
    for place, code in enumerate(manifest.npu):
        stream, constants = _digest(code.stream_sha256), _digest(code.constants_sha256)
        yield f"operator {place}", f"stream {stream}, constants {constants}"
    proof = facts.proof
    of = f" on {count(proof.inputs, 'input')} of seed {proof.seed}, {_digest(proof.sha256)}"
    yield "proof", proof.verdict + (of if proof.inputs else "")


def _digest(digest: str) -> str:
    return f"SHA-256 {digest[:SHOWN_DIGITS]}..."


def _shortened(name: str, value: str | int) -> str:
    return f"{str(value)[:SHOWN_DIGITS]}..." if name.endswith("_sha256") else str(value)
