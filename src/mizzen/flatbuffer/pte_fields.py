"""What becomes of each field of an ExecuTorch program."""

from __future__ import annotations

from mizzen.flatbuffer.fields import Fields, Table

_ELSEWHERE = "it lies in the memory of a device beside the processor"
_OTHER = "what it starts with is in another segment than the first"

FIELDS: Table = {
    "AllocationDetails": Fields(read="memory_id memory_offset_low memory_offset_high"),
    "BackendDelegate": Fields(read="id processed compile_specs"),
    "BackendDelegateDataReference": Fields(read="location index"),
    "BackendDelegateInlineData": Fields(read="data"),
    "Bool": Fields(read="bool_val"),
    "BoolList": Fields(read="items"),
    "Buffer": Fields(read="storage"),
    "Chain": Fields(read="instructions", silent="inputs outputs stacktrace"),
    "CompileSpec": Fields(read="key value"),
    "ContainerMetadata": Fields(silent="encoded_inp_str encoded_out_str"),
    "DataSegment": Fields(read="offset size"),
    "DelegateCall": Fields(read="delegate_index args"),
    "Double": Fields(read="double_val"),
    "DoubleList": Fields(read="items"),
    "EValue": Fields(read="val"),
    "ExecutionPlan": Fields(
        read="name values inputs outputs chains operators delegates non_const_buffer_sizes",
        silent="container_meta_type non_const_buffer_device",
    ),
    "ExtraTensorInfo": Fields(
        read="fully_qualified_name location",
        silent="device_index",
        refused={"mutable_data_segments_idx": _OTHER, "device_type": _ELSEWHERE},
    ),
    "Frame": Fields(silent="filename lineno name context"),
    "FrameList": Fields(silent="items"),
    "FreeCall": Fields(read="value_index"),
    "Instruction": Fields(read="instr_args"),
    "Int": Fields(read="int_val"),
    "IntList": Fields(read="items"),
    "JumpFalseCall": Fields(read="cond_value_index destination_instruction"),
    "KernelCall": Fields(read="op_index args"),
    "MoveCall": Fields(read="move_from move_to"),
    "NamedData": Fields(read="key segment_index"),
    "NonConstBufferDevice": Fields(
        silent="buffer_idx device_index", refused={"device_type": _ELSEWHERE}
    ),
    "Operator": Fields(read="name overload"),
    "OptionalTensorList": Fields(read="items"),
    "Program": Fields(
        read="execution_plan constant_buffer backend_delegate_data segments constant_segment "
        "mutable_data_segments named_data",
        refused={"version": "it is of another version of the schema"},
    ),
    "String": Fields(read="string_val"),
    "SubsegmentOffsets": Fields(read="segment_index offsets"),
    "Tensor": Fields(
        read="scalar_type storage_offset sizes dim_order data_buffer_idx allocation_info "
        "shape_dynamism extra_tensor_info",
        silent="requires_grad",
        refused={"layout": "only some of its elements are stored"},
    ),
    "TensorList": Fields(read="items"),
}
