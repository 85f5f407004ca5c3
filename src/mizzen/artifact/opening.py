"""An artifact out of files as people have them: with its data beside it, or examples around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mizzen.artifact.interface import Array, Example
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.verifying import doubts_of, reading, written_bytes
from mizzen.diagnostics import Diagnostic, MizzenError, fail, unreadable
from mizzen.embedded.arrays import byte_arrays, is_source
from mizzen.embedded.search import Kind, Payload, is_carrier, payloads
from mizzen.flatbuffer import bpte, ptd
from mizzen.flatbuffer.pte import DTYPES, is_pte
from mizzen.flatbuffer.reader import Member, Record, read
from mizzen.package.executorch import vela_bin

CONTAINER = b"MZN1"
"""How a container of Mizzen's C runtime begins."""

MOST_BESIDE = 64
"""Files of data that are looked at where none was named."""

MOST_NAMED = 8
"""Arrays of a source that a diagnostic names."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """The bytes of an artifact alone, examples that came with it, why it may be another's bytes."""

    data: bytes
    examples: tuple[Example, ...] = ()
    doubts: tuple[Diagnostic, ...] = ()


def read_file(path: Path) -> bytes:
    """Return the bytes of a file. E110 for one that cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def opened(
    path: Path, data: bytes, beside: Sequence[Path] = (), payload: int | None = None
) -> Opened:
    """Return what a file holds.

    beside   ExecuTorch's files of data; where none is named, those in the folder of a program that
             needs some
    payload  which of the networks in a C source or an image of firmware

    E101, E102, E173 and E184 for files that are damaged, E110 for one that cannot be read, E185 and
    E186 for a command stream whose constants are elsewhere, E200 for data that no ExecuTorch
    program asks for, E684 for one that its manifest says is not as it was written, E696 to E698 for
    a source or image that has no network, or not the one that is asked for.
    """
    whole = unwrapped(_network(path, data, payload), path.name)
    if not is_pte(whole.data, path.name):
        _require_none(path, beside)
        return whole
    with reading(path.name, whole.doubts):
        return replace(whole, data=_with_data(path, whole.data, beside))


def unwrapped(data: bytes, name: str) -> Opened:
    """Return what a file's bytes hold, without anything beside it. Raises as `opened`."""
    held = _bundled(data, name) if data[4:8] == bpte.SCHEMA.identifier else Opened(data)
    return replace(held, doubts=doubts_of(held.data, name))


def _network(path: Path, data: bytes, payload: int | None) -> bytes:
    """Return the network that is in a file; the file where it is one itself."""
    if data.startswith(vela_bin.FIRST.encode()):
        from mizzen.artifact.delegate import archive_of_delegate

        return archive_of_delegate(data, path.name)
    if not is_carrier(data, path.name):
        if payload is not None:
            raise fail(
                "E200",
                f"the command line is wrong: {path.name} is a network itself, and has none in it",
                help="leave out --payload",
            )
        return data
    held = payloads(data, path.name)
    if not held:
        raise fail(
            "E696",
            f"{path.name} must have a network in it, a TFLite file, an ExecuTorch program or a "
            "payload of Arm's driver, and has none that is whole",
            help=_instead(data, path.name),
        )
    found = chosen(held, path.name, payload)
    if found.kind is Kind.STREAM:
        return with_memory(path, found, None, {})
    return written_bytes(found.data)


def chosen(held: Sequence[Payload], name: str, payload: int | None) -> Payload:
    """Return the network that is asked for, or the only one; E697 for none of them."""
    if payload is None and len(held) == 1:
        return held[0]
    if payload is None or not 0 <= payload < len(held):
        came = "none is chosen" if payload is None else f"{payload} is none of them"
        raise fail(
            "E697",
            f"one of the {len(held)} networks in {name} must be chosen, 0 to {len(held) - 1}, and "
            f"{came}",
            help=f"--payload N; `mizzen inspect {name}` lists them",
        )
    return held[payload]


def with_memory(
    path: Path, found: Payload, accelerator: str | None, regions: Mapping[int, bytes | int]
) -> bytes:
    """Return Vela's raw archive of a command stream that is in a file.

    regions  what regions start with, or their sizes; others are as long as the stream needs, and
             region 0 is the array that the names' convention says, here or in a source beside

    E113 for another accelerator, E185 without its constants, E186 where they are too short.
    """
    from mizzen.artifact.streams import archive_of_payload

    constants = _constants(path, found)
    return archive_of_payload(found.data, path.name, accelerator, constants, regions)


def _constants(path: Path, found: Payload) -> tuple[str, bytes | None] | None:
    """Return what belongs to a stream by its name, also out of a source beside it."""
    if found.constants is None or found.constants[1] is not None or not is_source(path.name):
        return found.constants
    name = found.constants[0]
    beside = path.with_name(f"{name}{path.suffix}")
    arrays = byte_arrays(read_file(beside)) if beside.is_file() else ()
    return name, next((array.data for array in arrays if array.name == name), None)


def contents_of_region(path: Path) -> bytes:
    """Return what a region starts with: a file's bytes, or those of a C source's only array.

    E110 for a file that cannot be read, E187 for a source with none or several.
    """
    data = read_file(path)
    if not is_source(path.name):
        return data
    arrays = tuple(byte_arrays(data))
    if len(arrays) == 1:
        return arrays[0].data
    names = ", ".join(array.name for array in arrays[:MOST_NAMED]) or "none"
    raise fail(
        "E187",
        f"{path.name} must have one array of bytes, which a region starts with, and has "
        f"{len(arrays)}: {names}",
        help="give the bytes as a file of their own",
    )


def _instead(data: bytes, name: str) -> str:
    """Say what to give in place of a file that has no network."""
    held = [array.data for array in byte_arrays(data)] if is_source(name) else [data]
    if any(CONTAINER in part for part in held):
        return (
            "it has a container of Mizzen's C runtime, which is for the device: give the file that "
            "it was exported from"
        )
    return (
        "give the file that has the bytes of the network; compressed images have to be unpacked "
        "before, and words of a command stream without a head need --accelerator-config and "
        "--region N=FILE for each region that they read"
    )


def _require_none(path: Path, beside: Sequence[Path]) -> None:
    if beside:
        raise fail(
            "E200",
            f"the command line is wrong: {beside[0]} is data of an ExecuTorch program, and "
            f"{path} is none",
            help="leave out --ptd",
        )


def _with_data(path: Path, data: bytes, beside: Sequence[Path]) -> bytes:
    from mizzen.package.executorch.joining import keys_elsewhere, with_data

    missing = keys_elsewhere(data, path.name)
    if not missing:
        return data
    files = beside or sorted(path.parent.glob(f"*{ptd.ENDING}"))[:MOST_BESIDE]
    contents: dict[str, bytes] = {}
    for file in files:
        held = ptd.named_data(read_file(file), file.name)
        contents |= {key: part for key, part in held.items() if key in missing}
    if not contents:
        return data
    return with_data(unsealed(data, path.name), path.name, contents)


def _bundled(data: bytes, name: str) -> Opened:
    root = read(data, bpte.SCHEMA, name)
    program = b"" if root["program"] is None else root["program"].tobytes()
    suites: list[Record] = root["method_test_suites"] or []
    chosen = [suite for suite in suites if suite["method_name"] == "forward"] or suites[:1]
    cases = (case for suite in chosen for case in suite["test_cases"] or ())
    return Opened(program, tuple(_example(case, name) for case in cases))


def _example(case: Record, name: str) -> Example:
    inputs, expected = (
        tuple(_arrays(case[key] or (), name)) for key in ("inputs", "expected_outputs")
    )
    return Example(inputs, expected)


def _arrays(values: Iterable[Record], name: str) -> Iterator[Array]:
    """Return the tensors of a list, in their dimensions' order; ExecuTorch takes no others."""
    for value in values:
        member = value["val"]
        if not isinstance(member, Member) or member.table != "Tensor":
            continue
        fields = member.fields
        dtype = DTYPES.get(fields["scalar_type"])
        shape: list[int] = [] if fields["sizes"] is None else fields["sizes"].tolist()
        order: list[int] = list(range(len(shape)))
        if fields["dim_order"] is not None:
            order = fields["dim_order"].tolist()
        held = np.zeros(0, np.uint8) if fields["data"] is None else fields["data"]
        if dtype is None or sorted(order) != list(range(len(shape))) or min(shape, default=0) < 0:
            raise _damaged(name, f"a tensor cannot have type {fields['scalar_type']} and {shape}")
        stored = tuple(shape[axis] for axis in order)
        if held.nbytes != int(np.prod(stored, dtype=np.float64)) * dtype.itemsize:
            raise _damaged(name, f"a tensor of shape {shape} cannot have {held.nbytes} bytes")
        yield held.view(dtype).reshape(stored).transpose(np.argsort(order))


def _damaged(name: str, reason: str) -> MizzenError:
    return fail(
        "E173",
        f"{name} must be a whole bundled program of ExecuTorch: {reason}",
        rule="ExecuTorch 1.5, devtools/bundled_program/schema/bundled_program_schema.fbs",
        help="get the file again; it is truncated or its bytes have changed",
    )
