"""Tables and unions of ExecuTorch programs, as lines of fields.

Ref: ExecuTorch 1.5, schema/program.fbs (file identifier ``ET12``).
"""

from __future__ import annotations

TABLES = {
    "AllocationDetails": "memory_id:u32 memory_offset_low:u32 memory_offset_high:u32",
    "BackendDelegate": (
        "id:str processed:BackendDelegateDataReference compile_specs:[CompileSpec]"
    ),
    "BackendDelegateDataReference": "location:i8 index:u32",
    "BackendDelegateInlineData": "data:[u8]",
    "Bool": "bool_val:bool",
    "BoolList": "items:[bool]",
    "Buffer": "storage:[u8]",
    "Chain": "inputs:[i32] outputs:[i32] instructions:[Instruction] stacktrace:[FrameList]",
    "CompileSpec": "key:str value:[u8]",
    "ContainerMetadata": "encoded_inp_str:str encoded_out_str:str",
    "DataSegment": "offset:u64 size:u64",
    "DelegateCall": "delegate_index:i32 args:[i32]",
    "Double": "double_val:f64",
    "DoubleList": "items:[f64]",
    "EValue": "val:<KernelTypes>",
    "ExecutionPlan": (
        "name:str container_meta_type:ContainerMetadata values:[EValue] inputs:[i32] outputs:[i32] "
        "chains:[Chain] operators:[Operator] delegates:[BackendDelegate] "
        "non_const_buffer_sizes:[i64] non_const_buffer_device:[NonConstBufferDevice]"
    ),
    "ExtraTensorInfo": (
        "mutable_data_segments_idx:u64 fully_qualified_name:str location:i8 device_type:i8 "
        "device_index:i8"
    ),
    "Frame": "filename:str lineno:i32 name:str context:str",
    "FrameList": "items:[Frame]",
    "FreeCall": "value_index:i32",
    "Instruction": "instr_args:<InstructionArguments>",
    "Int": "int_val:i64",
    "IntList": "items:[i64]",
    "JumpFalseCall": "cond_value_index:i32 destination_instruction:i32",
    "KernelCall": "op_index:i32 args:[i32]",
    "MoveCall": "move_from:i32 move_to:i32",
    "NamedData": "key:str segment_index:u32",
    "NonConstBufferDevice": "buffer_idx:i32 device_type:i8 device_index:i8",
    "Null": "",
    "Operator": "name:str overload:str",
    "OptionalTensorList": "items:[i32]",
    "Program": (
        "version:u32 execution_plan:[ExecutionPlan] constant_buffer:[Buffer] "
        "backend_delegate_data:[BackendDelegateInlineData] segments:[DataSegment] "
        "constant_segment:SubsegmentOffsets mutable_data_segments:[SubsegmentOffsets] "
        "named_data:[NamedData]"
    ),
    "String": "string_val:str",
    "SubsegmentOffsets": "segment_index:u32 offsets:[u64]",
    "Tensor": (
        "scalar_type:i8 storage_offset:i32 sizes:[i32] dim_order:[u8] requires_grad:bool "
        "data_buffer_idx:u32 allocation_info:AllocationDetails layout:i8 shape_dynamism:i8 "
        "extra_tensor_info:ExtraTensorInfo"
    ),
    "TensorList": "items:[i32]",
}

UNIONS = {
    "KernelTypes": (
        "NONE",
        "Null",
        "Int",
        "Bool",
        "Double",
        "Tensor",
        "String",
        "IntList",
        "DoubleList",
        "BoolList",
        "TensorList",
        "OptionalTensorList",
    ),
    "InstructionArguments": (
        "NONE",
        "KernelCall",
        "DelegateCall",
        "MoveCall",
        "JumpFalseCall",
        "FreeCall",
    ),
}
