"""ExecuTorch's dumps of events, `.etdp`: what the runtime's tracer saw, run by run.

Ref: ExecuTorch 1.5, devtools/etdump/etdump_schema_flatcc.fbs.
"""

from __future__ import annotations

from mizzen.flatbuffer.fields import Fields
from mizzen.flatbuffer.reader import Record, read
from mizzen.flatbuffer.schema import Schema

SCHEMA = Schema(
    "ETDump",
    "ETDump",
    b"ED00",
    {
        "ETDump": "version:u32 run_data:[RunData]",
        "RunData": "name:str bundled_input_index:i32=-1 allocators:[Allocator] events:[Event]",
        "Allocator": "name:str",
        "Event": "profile_event:ProfileEvent allocation_event:AllocationEvent "
        "debug_event:DebugEvent",
        "ProfileEvent": "name:str chain_index:i32 instruction_id:i32=-1 "
        "delegate_debug_id_int:i32=-1 delegate_debug_id_str:str delegate_debug_metadata:[u8] "
        "start_time:u64 end_time:u64",
        "AllocationEvent": "allocator_id:i32 allocation_size:u64",
        "DebugEvent": "chain_index:u64 instruction_id:i32=-1",
    },
    {},
    {
        "ETDump": Fields(read="run_data", silent="version"),
        "RunData": Fields(read="name events", silent="bundled_input_index allocators"),
        "Allocator": Fields(silent="name"),
        "Event": Fields(read="profile_event", silent="allocation_event debug_event"),
        "ProfileEvent": Fields(
            read="name instruction_id delegate_debug_id_str start_time end_time",
            silent="chain_index delegate_debug_id_int delegate_debug_metadata",
        ),
        "AllocationEvent": Fields(silent="allocator_id allocation_size"),
        "DebugEvent": Fields(silent="chain_index instruction_id"),
    },
)
"""Of a value that was kept for debugging nothing is read: its table stops before it."""

PREFIX_BYTES = 4
"""Before what the runtime writes stands its size."""
_IDENTIFIER = slice(4, 8)


def is_etdump(data: bytes) -> bool:
    """Whether a file is such a dump, with its size before it or without."""
    return SCHEMA.identifier in (data[_IDENTIFIER], data[PREFIX_BYTES:][_IDENTIFIER])


def read_etdump(data: bytes, file: str) -> Record:
    """Return the dump's root table; `file` names it in diagnostics.

    E101 for a file of another format, E102 for a damaged one.
    """
    start = 0 if data[_IDENTIFIER] == SCHEMA.identifier else PREFIX_BYTES
    return read(data[start:], SCHEMA, file)
