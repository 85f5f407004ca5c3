"""What becomes of each field of a TOSA file."""

from __future__ import annotations

from mizzen.flatbuffer.fields import Fields, Table
from mizzen.flatbuffer.tosa_tables import OPERATIONS

_BEHIND = "its contents lie after the tables, where nothing reads them"


def _names(fields: str) -> str:
    return " ".join(field.partition(":")[0] for field in fields.split())


FIELDS: Table = {
    # An operation has every attribute of its table.
    **{table: Fields(read=_names(fields)) for table, fields in OPERATIONS.values() if fields},
    "OpLocation": Fields(silent="text"),
    "TosaBasicBlock": Fields(read="name operators tensors inputs outputs shapes"),
    "TosaGraph": Fields(read="version regions"),
    "TosaOperator": Fields(read="op attribute inputs outputs", silent="location"),
    "TosaRegion": Fields(read="name blocks"),
    "TosaShape": Fields(read="name rank data"),
    "TosaTensor": Fields(
        read="name shape type data variable is_unranked variable_name",
        refused={"offset": _BEHIND, "size": _BEHIND},
    ),
    "Version": Fields(read="_major", silent="_minor _patch _draft"),
}
