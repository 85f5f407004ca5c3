"""The commands of stream 3.1: one row each, in the order of the opcodes.

Ref: Ethos-N driver stack 23.02, `CommandData.hpp` and `PleOperation.hpp` of the command stream.
A command is an opcode of one byte and a structure at the next multiple of its alignment; the whole
is a multiple of four bytes long.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.isa import Command, Kind, bits, number
from mizzen.targets.ethos_n import commands as records
from mizzen.targets.ethos_n.commands_layout import Extents, Member, Scalar, Struct, Text, fields_of
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    DataTypeCode,
    Format,
    Location,
    MceOperation,
    PleOperation,
    Strategy,
    Upsample,
    UpsampleEdge,
)

OPCODE_BITS = 8
SOURCE = "driver stack 23.02, ethosn_command_stream/CommandData.hpp"


def _tensor(extents: Extents) -> Struct:
    return Struct(
        records.TensorRecord,
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
    records.BlockConfigRecord,
    (
        Member("width", Scalar.U32, "of the part of a plane that is made at once", "elements"),
        Member("height", Scalar.U32, "of the part of a plane that is made at once", "elements"),
    ),
)

MCE = Struct(
    records.MceRecord,
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
    records.PleRecord,
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

    command: Command
    struct: Struct


def _row(kind: Kind, key: int, name: str, doc: str, record: type, *members: Member) -> Row:
    struct = Struct(record, members)
    start = -(-1 // struct.alignment) * struct.alignment
    words = -(-(start + struct.size_bytes) // 4)
    fields = tuple(fields_of(struct, start))
    if not members:
        # The structure is empty, yet has a byte in C++, which nothing sets.
        fields = (number("unset", bits(15, 8), doc="a byte without a meaning"),)
    command = Command(name, key, words, kind, fields, doc, SOURCE, OPCODE_BITS)
    return Row(command, struct)


def _op(key: int, name: str, doc: str, record: type, *members: Member) -> Row:
    return _row(Kind.OPERATION, key, name, doc, record, *members)


def _ctl(key: int, name: str, doc: str, record: type, *members: Member) -> Row:
    return _row(Kind.CONTROL, key, name, doc, record, *members)


# fmt: off
ROWS: tuple[Row, ...] = (
    _op(0, "MCE_PLE", "a pass of the compute engine and the programmable layer engine",
        records.McePle, _INPUT,
        Member("weights", WEIGHTS, "read"),
        Member("weight_metadata_buffer_id", Scalar.U32, "buffer of the stripes' places"),
        _OUTPUT, _STRATEGY,
        Member("block_config", BLOCK_CONFIG, "blocks of a plane"),
        Member("mce", MCE, "what the compute engine does"), _PLE),
    _op(1, "PLE_ONLY", "a pass of the programmable layer engine",
        records.PleOnly,
        Member("input_count", Scalar.I32, "how many of the two inputs there are"),
        Member("input0", FEATURE_MAP, "the first input"),
        Member("input1", FEATURE_MAP, "the second input"), _OUTPUT, _STRATEGY, _PLE),
    _op(3, "CONVERT", "a copy through SRAM from one layout to another",
        records.Convert, _INPUT, _OUTPUT),
    _op(4, "SPACE_TO_DEPTH", "blocks of each plane to channels",
        records.SpaceToDepth, _INPUT, _OUTPUT,
        Member("used_emcs", Scalar.U32, "SRAM banks that are used"),
        Member("intermediate0_bytes", Scalar.U32, "of the first intermediate in SRAM", "bytes"),
        Member("intermediate1_bytes", Scalar.U32, "of the second intermediate in SRAM", "bytes")),
    _ctl(5, "DUMP_DRAM", "writes a buffer to a file, where the firmware can",
         records.DumpDram,
         Member("dram_buffer_id", Scalar.U32, "index in the table of buffers"), _FILENAME),
    _ctl(6, "DUMP_SRAM", "writes the SRAM to files, where the firmware can",
         records.DumpSram, _FILENAME),
    _ctl(7, "FENCE", "waits for everything before it", records.Fence),
    _ctl(8, "SECTION", "starts a section of a cascade",
         records.Section, Member("type", Scalar.U8, "SISO to MISO, 0 to 5")),
    _ctl(9, "DELAY", "waits", records.Delay, Member("value", Scalar.U32, "how long")),
    _ctl(10, "CASCADE", "agents that run side by side, of the experimental compiler only",
         records.Cascade, Member("agents", Scalar.U32, "records that follow the command")),
)
# fmt: on
