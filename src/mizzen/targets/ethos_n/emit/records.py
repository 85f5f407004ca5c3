"""What commands say of tensors.

Ref: Ethos-N driver stack 23.02, command stream 3.1.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.commands import TensorRecord
from mizzen.targets.ethos_n.commands_values import DataTypeCode, Format, Location
from mizzen.targets.ethos_n.lower.graph import Node
from mizzen.targets.ethos_n.schedule.attempt import Attempt
from mizzen.targets.ethos_n.schedule.fcaf import cell_bytes
from mizzen.targets.ethos_n.schedule.plan import brick_bytes, volume
from mizzen.targets.ethos_n.tensors import DataType, Shape

ORIGIN: Shape = (0, 0, 0, 0)
DATA_TYPE_CODES = {DataType.U8: DataTypeCode.U8, DataType.S8: DataTypeCode.S8}
NO_TENSOR = TensorRecord(
    DataTypeCode.U8,
    Format.NHWCB_COMPRESSED,
    ORIGIN,
    ORIGIN,
    ORIGIN,
    ORIGIN,
    0,
    0,
    0,
    0,
    Location.DRAM,
)
"""What stands for the second input where there is one only: zeros."""


def buffer_bytes(shape: Shape, format: Format) -> int:
    """Return the size of a map in DRAM."""
    match format:
        case Format.FCAF_DEEP | Format.FCAF_WIDE:
            return cell_bytes(shape, format)
        case Format.NHWCB:
            return brick_bytes(shape)
        case _:
            return volume(shape)


def tensor_record(
    node: Node,
    attempt: Attempt,
    buffer_id: int,
    stripe: Shape,
    tile_bytes: int,
    sram_offset_bytes: int,
) -> TensorRecord:
    """Return what a command says of a node's map, all of it."""
    return TensorRecord(
        data_type=DATA_TYPE_CODES[node.data_type],
        format=attempt.format(node),
        shape=node.shape,
        supertensor_shape=node.shape,
        supertensor_offset=ORIGIN,
        stripe_shape=stripe,
        tile_bytes=tile_bytes,
        dram_buffer_id=buffer_id,
        sram_offset_bytes=sram_offset_bytes,
        zero_point=node.quantization.zero_point,
        location=attempt.of(node).location or Location.DRAM,
    )
