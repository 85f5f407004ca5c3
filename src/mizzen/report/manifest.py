"""What an artifact says of itself, inside its own file: whose bytes it is made of, and its proof.

As text it stands between two lines, wherever the container keeps it, so that it is found without
reading the container, and damage of the container cannot hide it:

    -----BEGIN MIZZEN MANIFEST-----
    {"bytes":14016,"compiler":"Mizzen",...}
    -----END MIZZEN MANIFEST <SHA-256 of the line above, without its end>-----

The line is JSON in one form only: keys sorted, no spaces, ASCII. `file_sha256` in it is of all
bytes of the file before the first of the three lines and after the last. So the line is a
statement of the whole file that can be signed, and one flipped bit never hides both other lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, cast

from mizzen.report.proof import Proof

FORMAT = 1

BEGIN = b"-----BEGIN MIZZEN MANIFEST-----\n"
END = b"\n-----END MIZZEN MANIFEST "
_LAST = b"-----\n"
_DIGEST = re.compile("[0-9a-f]{64}")
_DIGEST_LETTERS = 64
NO_DIGEST = "0" * _DIGEST_LETTERS

Setting = str | int


@dataclass(frozen=True, slots=True)
class Source:
    """The network that was compiled: its name, and the digest of its file; empty without a file."""

    name: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class NpuCode:
    """Digests of what an NPU operator executes: its command stream, and its constants."""

    stream_sha256: str
    constants_sha256: str


@dataclass(frozen=True, slots=True)
class Proved:
    """What was proved: inferences and the seed of their inputs, and what came.

    sha256   of the inputs and of what they gave; zeros without a proof, so that a file has nearly
             the same size with one and without
    verdict  equal, bounded, differs, partly compared or not compared
    """

    inputs: int
    seed: int
    sha256: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a manifest says of how an artifact was made, whichever file it is in.

    tool           which version of Mizzen
    compiler       whose code the NPU executes
    configuration  in force, by name; `settings_sha256` is of all of its numbers
    """

    tool: str
    compiler: str
    source: Source
    configuration: Mapping[str, Setting]
    proof: Proved


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an artifact's file says of itself.

    bytes          of the whole file
    file_sha256    of all of them but the manifest
    tables_sha256  of what says where inputs and outputs are, what they are called and stand for
    npu            of each NPU operator, in the file's order
    """

    bytes: int
    file_sha256: str
    tables_sha256: str
    npu: tuple[NpuCode, ...]
    facts: Facts

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data, under the names that it has in a file."""
        facts = {**asdict(self.facts), "configuration": dict(self.facts.configuration)}
        own = {
            "format": FORMAT,
            "bytes": self.bytes,
            "file_sha256": self.file_sha256,
            "tables_sha256": self.tables_sha256,
            "npu": [asdict(each) for each in self.npu],
        }
        return own | facts

    def text(self) -> bytes:
        """Return the line of JSON, without its end."""
        document = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))
        return document.encode("ascii")

    def framed(self) -> bytes:
        """Return the three lines."""
        line = self.text()
        return BEGIN + line + END + sha256(line).hexdigest().encode() + _LAST


class DamagedManifestError(Exception):
    """Says what is wrong with the manifest in a file, in words that follow "its manifest"."""


class NewerManifestError(DamagedManifestError):
    """The manifest is whole, and of a format that is not known here."""


@dataclass(frozen=True, slots=True)
class Found:
    """A manifest, and where its three lines are in the file."""

    manifest: Manifest
    start: int
    end: int


def find(data: bytes) -> Found | None:
    """Return the manifest in a file's bytes; None where nothing of one is there.

    `DamagedManifestError` for one that is not whole, `NewerManifestError` for another format.
    """
    starts, ends = data.count(BEGIN), data.count(END)
    if not starts and not ends:
        return None
    if (starts, ends) != (1, 1):
        raise DamagedManifestError(
            f"must begin and end once, and there are {starts} beginnings and {ends} ends"
        )
    start, stop = data.find(BEGIN), data.find(END)
    line = data[start + len(BEGIN) : stop]
    own = stop + len(END)
    end = own + _DIGEST_LETTERS + len(_LAST)
    if data[own:end] != sha256(line).hexdigest().encode() + _LAST:
        raise DamagedManifestError("must have the bytes that the digest in its last line is of")
    return Found(_parsed(line), start, end)


def manifest_in(data: bytes) -> Manifest | None:
    """Return the manifest in a file's bytes; None without one, or with one that is damaged."""
    try:
        found = find(data)
    except DamagedManifestError:
        return None
    return None if found is None else found.manifest


def has_beginning(data: bytes) -> bool:
    """Whether bytes hold a line that only manifests may have."""
    return BEGIN in data or END in data


def digest_outside(data: bytes, found: Found) -> str:
    """Return the SHA-256 of a file's bytes without the three lines."""
    digest = sha256(memoryview(data)[: found.start])
    digest.update(memoryview(data)[found.end :])
    return digest.hexdigest()


def _parsed(line: bytes) -> Manifest:
    try:
        document = json.loads(line)
        newer = document["format"] != FORMAT
        manifest = None if newer else manifest_of(document)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedManifestError(f"cannot be read: {error}") from None
    if manifest is None:
        said = f"must have format {FORMAT}, and has {document['format']!r}"
        raise NewerManifestError(said)
    if manifest.text() != line:
        raise DamagedManifestError("must be written as manifests are: keys sorted, no spaces")
    return manifest


def manifest_of(document: dict[str, Any]) -> Manifest:
    """Take a manifest out of JSON data; KeyError, TypeError or ValueError if it is not one."""
    return Manifest(
        bytes=_number(document["bytes"]),
        file_sha256=_digest(document["file_sha256"]),
        tables_sha256=_digest(document["tables_sha256"]),
        npu=tuple(
            NpuCode(_digest(each["stream_sha256"]), _digest(each["constants_sha256"]))
            for each in document["npu"]
        ),
        facts=Facts(
            tool=_text(document["tool"]),
            compiler=_text(document["compiler"]),
            source=Source(
                _text(document["source"]["name"]), _digest(document["source"]["sha256"], empty=True)
            ),
            configuration={
                _text(key): _setting(value) for key, value in document["configuration"].items()
            },
            proof=_proved(document["proof"]),
        ),
    )


def _proved(data: dict[str, Any]) -> Proved:
    inputs, seed = _number(data["inputs"]), _number(data["seed"])
    return Proved(inputs, seed, _digest(data["sha256"]), _text(data["verdict"]))


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value


def _setting(value: object) -> Setting:
    return _text(value) if isinstance(value, str) else _number(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _digest(value: object, *, empty: bool = False) -> str:
    text = _text(value)
    if not _DIGEST.fullmatch(text) and (text or not empty):
        raise ValueError(f"{text!r} is no SHA-256")
    return text


SETTINGS = "settings"


def configuration_of(data: Mapping[str, object]) -> dict[str, Setting]:
    """Return a configuration's names and numbers, and one digest of all of its settings.

    The names of files are left out: they say where these lay on one machine.
    """
    chosen: dict[str, Setting] = {}
    for key, value in data.items():
        if isinstance(value, str) or type(value) is int:
            chosen[key] = value
    settings = cast("list[dict[str, Any]]", data.get(SETTINGS, []))
    if settings:
        values = {each["name"]: each["value"] for each in settings}
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        chosen["settings_sha256"] = sha256(text.encode()).hexdigest()
    return chosen


def proved_of(proof: Proof) -> Proved:
    """Return what a manifest says of a proof."""
    return Proved(proof.inputs, proof.seed, proof.digest or NO_DIGEST, _verdict(proof))


def _verdict(proof: Proof) -> str:
    if proof.differing:
        return "differs"
    if not proof.compares:
        return "not compared"
    if proof.unproved:
        return "partly compared"
    return "bounded" if proof.bounded else "equal"
