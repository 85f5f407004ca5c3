"""The commands of stream 3.1: a row each in the order of the opcodes; streams of them, both ways.

A structure is a table of members; each member lies at the next multiple of its own alignment, as a
C compiler lays it out, and what is between members must be zero. From the table come the fields of
`mizzen.isa`, named by their path (`input.shape.h`), and the way back to the typed records.
A command is an opcode of one byte and a structure at the next multiple of its alignment; the whole
is a multiple of four bytes long. A stream is the tag "ENCS", the version as three 32-bit words, and
commands to the end.

Ref: Ethos-N driver stack 23.02, `CommandData.hpp`, `PleOperation.hpp` and `CommandStreamBuffer.hpp`
of the command stream.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import accumulate
from typing import cast

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, fail
from mizzen.isa import Command as CommandForm
from mizzen.isa import (
    Field,
    Instruction,
    InstructionSet,
    Kind,
    Slice,
    Unpack,
    bits,
    choice,
    number,
    signed,
)
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    BlockConfigRecord,
    Cascade,
    Command,
    Convert,
    DataTypeCode,
    Delay,
    DumpDram,
    DumpSram,
    Fence,
    Format,
    Location,
    MceOperation,
    McePle,
    MceRecord,
    PleOnly,
    PleOperation,
    PleRecord,
    Section,
    SpaceToDepth,
    Strategy,
    TensorRecord,
    Upsample,
    UpsampleEdge,
)

BITS_PER_BYTE = 8
FILENAME_BYTES = 128


class Scalar(Enum):
    """An integer of a structure: its bytes, and whether it is signed."""

    U8 = (1, False)
    U16 = (2, False)
    I16 = (2, True)
    U32 = (4, False)
    I32 = (4, True)


class Extents(Enum):
    """Four 32-bit extents, and what they are called."""

    FEATURE_MAP = ("n", "h", "w", "c")
    WEIGHTS = ("h", "w", "i", "o")


class Text(Enum):
    """Characters of one byte, zeros after the last."""

    FILENAME = FILENAME_BYTES


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure: the record that holds it, and its members in order."""

    record: Callable[..., object]
    members: tuple[Member, ...]

    @property
    def alignment(self) -> int:
        """Bytes that its address is a multiple of."""
        return max((alignment_of(member.form) for member in self.members), default=1)

    @property
    def size_bytes(self) -> int:
        """Bytes of the structure and of the padding at its end."""
        end = 0
        for member, start in self.placed():
            end = start + size_of(member.form)
        return _round_up(end, self.alignment)

    def placed(self, start: int = 0) -> Iterator[tuple[Member, int]]:
        """Return each member with the byte it begins at, in a structure that begins at `start`."""
        at = start
        for member in self.members:
            at = _round_up(at, alignment_of(member.form))
            yield member, at
            at += size_of(member.form)


Leaf = Scalar | Extents | Text | type[IntEnum]
Form = Leaf | Struct
"""What a member is; an enumeration is one byte."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure: the record's attribute, what it is, what it means, its unit."""

    name: str
    form: Form
    doc: str
    unit: str | None = None


def alignment_of(form: Form) -> int:
    """Return the bytes that a member's address is a multiple of."""
    match form:
        case Scalar():
            return form.value[0]
        case Extents():
            return 4
        case Struct():
            return form.alignment
        case _:
            return 1


def size_of(form: Form) -> int:
    """Return the bytes of a member."""
    match form:
        case Scalar():
            return form.value[0]
        case Extents():
            return 16
        case Text():
            return form.value
        case Struct():
            return form.size_bytes
        case _:
            return 1


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def fields_of(struct: Struct, start: int, prefix: str = "") -> Iterator[Field]:
    """Return the fields of a structure that begins at byte `start` of a command."""
    for member, at in struct.placed(start):
        yield from _fields(member, at, prefix + member.name)


def _fields(member: Member, at: int, name: str) -> Iterator[Field]:
    doc, unit = member.doc, member.unit
    match member.form:
        case Struct() as inner:
            yield from fields_of(inner, at, f"{name}.")
        case Extents() as extents:
            for place, axis in enumerate(extents.value):
                where = _bytes(at + 4 * place, 4)
                yield number(f"{name}.{axis}", where, doc=f"{doc}, {axis.upper()}", unit=unit)
        case Text() as text:
            yield number(name, _bytes(at, text.value), doc=doc)
        case Scalar() as scalar:
            size, is_signed = scalar.value
            make = signed if is_signed else number
            yield make(name, _bytes(at, size), doc=doc, unit=unit)
        case enum:
            yield choice(name, enum, _bytes(at, 1), doc=doc)


def _bytes(at: int, count: int) -> Slice:
    return Slice(BITS_PER_BYTE * at, BITS_PER_BYTE * count)


Value = int | str | tuple[int, ...]
"""What a member holds, unless it is a structure; members of enumerations are integers."""


def members_of(
    struct: Struct, values: Mapping[str, int], prefix: str = ""
) -> Iterator[tuple[str, Value]]:
    """Return each member that is not a structure by its path, from the values of the fields."""
    for member in struct.members:
        name = prefix + member.name
        if isinstance(member.form, Struct):
            yield from members_of(member.form, values, f"{name}.")
        else:
            yield name, _value(member.form, values, name)


def record_of(struct: Struct, values: Mapping[str, int], prefix: str = "") -> object:
    """Make the record of a structure from the values of its fields."""
    parts: list[object] = []
    for member in struct.members:
        name = prefix + member.name
        if isinstance(member.form, Struct):
            parts.append(record_of(member.form, values, f"{name}."))
        else:
            parts.append(_value(member.form, values, name))
    return struct.record(*parts)


def _value(form: Leaf, values: Mapping[str, int], name: str) -> Value:
    match form:
        case Extents() as extents:
            return tuple(values[f"{name}.{axis}"] for axis in extents.value)
        case Text() as text:
            return values[name].to_bytes(text.value, "little").decode("latin-1").rstrip("\0")
        case _:
            return values[name]


def values_of(struct: Struct, record: object, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Return the values of the fields of a structure from its record; E933 for a text too long."""
    for member in struct.members:
        part = getattr(record, member.name)
        name = prefix + member.name
        match member.form:
            case Struct() as inner:
                yield from values_of(inner, part, f"{name}.")
            case Extents() as extents:
                for axis, extent in zip(extents.value, part, strict=True):
                    yield f"{name}.{axis}", extent
            case Text() as text:
                yield name, _characters(name, str(part), text.value)
            case _:
                yield name, part


def _characters(name: str, text: str, most: int) -> int:
    if len(text) > most or any(ord(character) > 0xFF for character in text):
        raise fail("E933", f"{name} must be at most {most} characters of Latin-1, not {text!r}")
    return int.from_bytes(text.encode("latin-1"), "little")


OPCODE_BITS = 8
SOURCE = "driver stack 23.02, ethosn_command_stream/CommandData.hpp"


def _tensor(extents: Extents) -> Struct:
    return Struct(
        TensorRecord,
        (
            Member("data_type", DataTypeCode, "type of the elements"),
            Member("format", Format, "layout in DRAM"),
            Member("shape", extents, "extents", "elements"),
            Member("supertensor_shape", extents, "extents of the whole in memory", "elements"),
            Member("supertensor_offset", extents, "where in the whole it begins", "elements"),
            Member("stripe_shape", extents, "the part that is in SRAM at a time", "elements"),
            Member("tile_bytes", Scalar.U32, "SRAM over all banks", "bytes"),
            Member("dram_buffer_id", Scalar.U32, "index in the table of buffers"),
            Member("sram_offset_bytes", Scalar.U32, "where it is in each bank", "bytes"),
            Member("zero_point", Scalar.I16, "the number that stands for zero"),
            Member("location", Location, "where the pass finds or leaves it"),
        ),
    )


FEATURE_MAP = _tensor(Extents.FEATURE_MAP)
WEIGHTS = _tensor(Extents.WEIGHTS)

BLOCK_CONFIG = Struct(
    BlockConfigRecord,
    (
        Member("width", Scalar.U32, "of the part of a plane that is made at once", "elements"),
        Member("height", Scalar.U32, "of the part of a plane that is made at once", "elements"),
    ),
)

MCE = Struct(
    MceRecord,
    (
        Member("stride_x", Scalar.U32, "of the window", "elements"),
        Member("stride_y", Scalar.U32, "of the window", "elements"),
        Member("pad_top", Scalar.U32, "rows of zeros before the input", "elements"),
        Member("pad_left", Scalar.U32, "columns of zeros before the input", "elements"),
        Member("uninterleaved_input_shape", Extents.FEATURE_MAP, "before interleaving", "elements"),
        Member("output_shape", Extents.FEATURE_MAP, "of what goes to the PLE", "elements"),
        Member("output_stripe_shape", Extents.FEATURE_MAP, "of what goes to the PLE", "elements"),
        Member("output_zero_point", Scalar.I16, "added to the scaled sum"),
        Member("upsample", Upsample, "what is put between the elements of the input"),
        Member("upsample_edge_row", UpsampleEdge, "whether the last row is made"),
        Member("upsample_edge_column", UpsampleEdge, "whether the last column is made"),
        Member("operation", MceOperation, "what is computed"),
        Member("algorithm", Algorithm, "how it is computed"),
        Member("activation_min", Scalar.I16, "lower bound of the result"),
        Member("activation_max", Scalar.I16, "upper bound of the result"),
    ),
)

PLE = Struct(
    PleRecord,
    (
        Member("ce_sram", Scalar.U32, "where the kernel is in SRAM", "bytes"),
        Member("ple_sram", Scalar.U32, "where the kernel is in the engine's memory", "bytes"),
        Member("operation", PleOperation, "the kernel"),
        Member("multiplier0", Scalar.U16, "of the rescaling of the first input"),
        Member("shift0", Scalar.U16, "of the rescaling of the first input", "bits"),
        Member("multiplier1", Scalar.U16, "of the second rescaling"),
        Member("shift1", Scalar.U16, "of the second rescaling", "bits"),
    ),
)
_STRATEGY = Member("strategy", Strategy, "how the pass cuts its tensors into stripes")
_INPUT = Member("input", FEATURE_MAP, "read")
_OUTPUT = Member("output", FEATURE_MAP, "written")
_PLE = Member("ple", PLE, "what the programmable layer engine does")
_FILENAME = Member("filename", Text.FILENAME, "a name of at most 128 bytes, zeros after it")


@dataclass(frozen=True, slots=True)
class Row:
    """A command and the structure that its fields come from."""

    command: CommandForm
    struct: Struct


def _row(kind: Kind, key: int, name: str, doc: str, record: type, *members: Member) -> Row:
    struct = Struct(record, members)
    start = -(-1 // struct.alignment) * struct.alignment
    words = -(-(start + struct.size_bytes) // 4)
    fields = tuple(fields_of(struct, start))
    if not members:
        # The structure is empty, yet has a byte in C++, which nothing sets.
        fields = (number("unset", bits(15, 8), doc="a byte without a meaning"),)
    command = CommandForm(name, key, words, kind, fields, doc, SOURCE, OPCODE_BITS)
    return Row(command, struct)


def _op(key: int, name: str, doc: str, record: type, *members: Member) -> Row:
    return _row(Kind.OPERATION, key, name, doc, record, *members)


def _ctl(key: int, name: str, doc: str, record: type, *members: Member) -> Row:
    return _row(Kind.CONTROL, key, name, doc, record, *members)


# fmt: off
ROWS: tuple[Row, ...] = (
    _op(0, "MCE_PLE", "a pass of the compute engine and the programmable layer engine",
        McePle, _INPUT,
        Member("weights", WEIGHTS, "read"),
        Member("weight_metadata_buffer_id", Scalar.U32, "buffer of the stripes' places"),
        _OUTPUT, _STRATEGY,
        Member("block_config", BLOCK_CONFIG, "blocks of a plane"),
        Member("mce", MCE, "what the compute engine does"), _PLE),
    _op(1, "PLE_ONLY", "a pass of the programmable layer engine",
        PleOnly,
        Member("input_count", Scalar.I32, "how many of the two inputs there are"),
        Member("input0", FEATURE_MAP, "the first input"),
        Member("input1", FEATURE_MAP, "the second input"), _OUTPUT, _STRATEGY, _PLE),
    _op(3, "CONVERT", "a copy through SRAM from one layout to another",
        Convert, _INPUT, _OUTPUT),
    _op(4, "SPACE_TO_DEPTH", "blocks of each plane to channels",
        SpaceToDepth, _INPUT, _OUTPUT,
        Member("used_emcs", Scalar.U32, "SRAM banks that are used"),
        Member("intermediate0_bytes", Scalar.U32, "of the first intermediate in SRAM", "bytes"),
        Member("intermediate1_bytes", Scalar.U32, "of the second intermediate in SRAM", "bytes")),
    _ctl(5, "DUMP_DRAM", "writes a buffer to a file, where the firmware can",
         DumpDram,
         Member("dram_buffer_id", Scalar.U32, "index in the table of buffers"), _FILENAME),
    _ctl(6, "DUMP_SRAM", "writes the SRAM to files, where the firmware can",
         DumpSram, _FILENAME),
    _ctl(7, "FENCE", "waits for everything before it", Fence),
    _ctl(8, "SECTION", "starts a section of a cascade",
         Section, Member("type", Scalar.U8, "SISO to MISO, 0 to 5")),
    _ctl(9, "DELAY", "waits", Delay, Member("value", Scalar.U32, "how long")),
    _ctl(10, "CASCADE", "agents that run side by side, of the experimental compiler only",
         Cascade, Member("agents", Scalar.U32, "records that follow the command")),
)
# fmt: on


TAG = b"ENCS"
VERSION = (3, 1, 0)
HEADER = TAG + struct.pack("<3I", *VERSION)
HEADER_WORDS = len(HEADER) // 4
_SOFTMAX = 2


def _explain(key: int) -> str:
    if key == _SOFTMAX:
        return "opcode 2 (SOFTMAX) is in no compiled network"
    return f"there is no opcode {key}"


INSTRUCTION_SET = InstructionSet(
    "Ethos-N command stream 3.1", tuple(entry.command for entry in ROWS), _explain
)
_ROW_OF_NAME = {entry.command.name: entry for entry in ROWS}
_ROW_OF_RECORD = {entry.struct.record: entry for entry in ROWS}


def decode(stream: bytes) -> list[Command]:
    """Decode a stream to typed commands.

    E930 for a header of another format, E931 for part of a word at the end, E932 for a cascade of
    agents, E501 to E504 with the word offset for what is not a command.
    """
    return [typed(instruction) for instruction in decode_instructions(stream)]


def decode_instructions(stream: bytes) -> list[Instruction]:
    """Decode a stream to instructions, whose word offsets count from the header's first word."""
    unpacked = decode_partial(stream)
    if unpacked.stopped_by is not None:
        raise MizzenError(unpacked.stopped_by)
    return unpacked.instructions


def decode_partial(stream: bytes) -> Unpack:
    """Decode as far as the stream is good, for listings of broken streams."""
    try:
        words = _words(stream)
    except MizzenError as error:
        return Unpack([], error.diagnostic)
    unpacked = INSTRUCTION_SET.decode_partial(words, HEADER_WORDS)
    for place, instruction in enumerate(unpacked.instructions):
        if instruction.values.get("agents"):
            return Unpack(unpacked.instructions[:place], _cascade(instruction))
    return unpacked


def encode(commands: Iterable[Command]) -> bytes:
    """Return the stream of typed commands, header included; E511 for a value that does not fit."""
    return encode_instructions(untyped(command) for command in commands)


def offsets(commands: Iterable[Command]) -> list[int]:
    """Return the byte of their stream at which each of some commands begins."""
    sizes = (4 * _ROW_OF_RECORD[type(command)].command.words for command in commands)
    return list(accumulate(sizes, initial=len(HEADER)))[:-1]


def encode_instructions(instructions: Iterable[Instruction]) -> bytes:
    """Return the stream of instructions, header included.

    E511 and E512 for a value that does not fit or is missing, E932 for a cascade of agents.
    """
    listed = list(instructions)
    for instruction in listed:
        if instruction.values.get("agents"):
            raise MizzenError(_cascade(instruction))
    return HEADER + INSTRUCTION_SET.encode(listed).astype("<u4").tobytes()


def typed(instruction: Instruction) -> Command:
    """Return an instruction as the typed command."""
    # The row's structure makes the record that it names, which is a command.
    return cast("Command", record_of(struct_of(instruction), instruction.values))


def struct_of(instruction: Instruction) -> Struct:
    """Return the structure that an instruction's fields come from."""
    return _ROW_OF_NAME[instruction.name].struct


def untyped(command: Command) -> Instruction:
    """Return a typed command as an instruction; E511 and E933 for a value that does not fit."""
    entry = _ROW_OF_RECORD[type(command)]
    values = dict(values_of(entry.struct, command))
    if not entry.struct.members:
        values = {item.name: 0 for item in entry.command.fields}
    return entry.command(**values)


def _words(stream: bytes) -> npt.NDArray[np.uint32]:
    if stream[: len(HEADER)] != HEADER:
        raise fail(
            "E930",
            f"a command stream must start with {TAG.decode()} and version "
            f"{'.'.join(map(str, VERSION))}; this one {_said(stream)}",
            origin=Origin(command=0),
            help="Mizzen reads streams of driver stack 22.08 to 23.02",
        )
    if len(stream) % 4:
        raise fail(
            "E931",
            f"a command stream must be whole words of 4 bytes, not {len(stream)} bytes",
            origin=Origin(command=len(stream) // 4),
        )
    return np.frombuffer(stream, "<u4")


def _said(stream: bytes) -> str:
    if len(stream) < len(HEADER):
        return f"has {len(stream)} bytes"
    if stream[:4] != TAG:
        return f"starts with {stream[:4].hex(' ')}"
    return f"has version {'.'.join(map(str, struct.unpack_from('<3I', stream, 4)))}"


def _cascade(instruction: Instruction) -> Diagnostic:
    agents = instruction.values["agents"]
    return fail(
        "E932",
        f"CASCADE must have no agents, not {agents}: their records are not commands",
        origin=Origin(command=instruction.offset_words),
        help="compile the network without the experimental compiler",
    ).diagnostic
