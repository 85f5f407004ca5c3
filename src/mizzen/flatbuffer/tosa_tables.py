"""Tables of the TOSA schema: operations in the order of their numbers, and what holds them.

Ref: TOSA serialization library 1.0, schema/tosa.fbs (file identifier ``TOSA``).
"""

CONVOLUTION = "pad:[i32] stride:[i32] dilation:[i32] local_bound:bool acc_type:u32"

OPERATIONS = {
    "ARGMAX": ("ArgMaxAttribute", "axis:i32 nan_mode:u32"),
    "AVG_POOL2D": ("AvgPool2dAttribute", "kernel:[i32] stride:[i32] pad:[i32] acc_type:u32"),
    "CONV2D": (
        "Conv2dAttribute",
        CONVOLUTION,
    ),
    "CONV3D": (
        "Conv3dAttribute",
        CONVOLUTION,
    ),
    "DEPTHWISE_CONV2D": (
        "DepthwiseConv2dAttribute",
        CONVOLUTION,
    ),
    "FFT2D": ("FFT2dAttribute", "inverse:bool local_bound:bool"),
    "MATMUL": ("MatMulAttribute", ""),
    "MAX_POOL2D": ("MaxPool2dAttribute", "kernel:[i32] stride:[i32] pad:[i32] nan_mode:u32"),
    "RFFT2D": ("RFFT2dAttribute", "local_bound:bool"),
    "TRANSPOSE_CONV2D": (
        "TransposeConv2dAttribute",
        "out_pad:[i32] stride:[i32] local_bound:bool acc_type:u32",
    ),
    "CLAMP": ("ClampAttribute", "min_val:[u8] max_val:[u8] nan_mode:u32"),
    "ERF": ("ErfAttribute", ""),
    "SIGMOID": ("SigmoidAttribute", ""),
    "TANH": ("TanhAttribute", ""),
    "ADD": ("AddAttribute", ""),
    "ARITHMETIC_RIGHT_SHIFT": ("ArithmeticRightShiftAttribute", "round:bool"),
    "BITWISE_AND": ("BitwiseAndAttribute", ""),
    "BITWISE_OR": ("BitwiseOrAttribute", ""),
    "BITWISE_XOR": ("BitwiseXorAttribute", ""),
    "INTDIV": ("IntDivAttribute", ""),
    "LOGICAL_AND": ("LogicalAndAttribute", ""),
    "LOGICAL_LEFT_SHIFT": ("LogicalLeftShiftAttribute", ""),
    "LOGICAL_RIGHT_SHIFT": ("LogicalRightShiftAttribute", ""),
    "LOGICAL_OR": ("LogicalOrAttribute", ""),
    "LOGICAL_XOR": ("LogicalXorAttribute", ""),
    "MAXIMUM": ("MaximumAttribute", "nan_mode:u32"),
    "MINIMUM": ("MinimumAttribute", "nan_mode:u32"),
    "MUL": ("MulAttribute", ""),
    "POW": ("PowAttribute", ""),
    "SUB": ("SubAttribute", ""),
    "TABLE": ("TableAttribute", ""),
    "ABS": ("AbsAttribute", ""),
    "BITWISE_NOT": ("BitwiseNotAttribute", ""),
    "CEIL": ("CeilAttribute", ""),
    "CLZ": ("ClzAttribute", ""),
    "COS": ("CosAttribute", ""),
    "EXP": ("ExpAttribute", ""),
    "FLOOR": ("FloorAttribute", ""),
    "LOG": ("LogAttribute", ""),
    "LOGICAL_NOT": ("LogicalNotAttribute", ""),
    "NEGATE": ("NegateAttribute", ""),
    "RECIPROCAL": ("ReciprocalAttribute", ""),
    "RSQRT": ("RsqrtAttribute", ""),
    "SIN": ("SinAttribute", ""),
    "SELECT": ("SelectAttribute", ""),
    "EQUAL": ("EqualAttribute", ""),
    "GREATER": ("GreaterAttribute", ""),
    "GREATER_EQUAL": ("GreaterEqualAttribute", ""),
    "REDUCE_ALL": ("ReduceAllAttribute", "axis:i32"),
    "REDUCE_ANY": ("ReduceAnyAttribute", "axis:i32"),
    "REDUCE_MAX": ("ReduceMaxAttribute", "axis:i32 nan_mode:u32"),
    "REDUCE_MIN": ("ReduceMinAttribute", "axis:i32 nan_mode:u32"),
    "REDUCE_PRODUCT": ("ReduceProductAttribute", "axis:i32"),
    "REDUCE_SUM": ("ReduceSumAttribute", "axis:i32"),
    "CONCAT": ("ConcatAttribute", "axis:i32"),
    "PAD": ("PadAttribute", ""),
    "RESHAPE": ("ReshapeAttribute", ""),
    "REVERSE": ("ReverseAttribute", "axis:i32"),
    "SLICE": ("SliceAttribute", ""),
    "TILE": ("TileAttribute", ""),
    "TRANSPOSE": ("TransposeAttribute", "perms:[i32]"),
    "GATHER": ("GatherAttribute", ""),
    "SCATTER": ("ScatterAttribute", ""),
    "RESIZE": ("ResizeAttribute", "mode:u32"),
    "CAST": ("CastAttribute", ""),
    "RESCALE": (
        "RescaleAttribute",
        "scale32:bool rounding_mode:u32 per_channel:bool input_unsigned:bool output_unsigned:bool",
    ),
    "CONST": ("ConstAttribute", ""),
    "IDENTITY": ("IdentityAttribute", ""),
    "CUSTOM": ("CustomAttribute", "operator_name:str domain_name:str implementation_attrs:[u8]"),
    "COND_IF": ("CondIfAttribute", "then_graph:str else_graph:str"),
    "WHILE_LOOP": ("WhileLoopAttribute", "cond_graph:str body_graph:str"),
    "VARIABLE": ("VariableAttribute", ""),
    "VARIABLE_WRITE": ("VariableWriteAttribute", ""),
    "VARIABLE_READ": ("VariableReadAttribute", ""),
    "CONST_SHAPE": ("ConstShapeAttribute", ""),
}
"""Operation to the member of the attribute union that it has, and that table's fields.

The first operation has the number 1 in both enumerations; 0 is none.
"""

TABLES = {
    **dict(OPERATIONS.values()),
    "OpLocation": "text:str",
    "TosaBasicBlock": (
        "name:str operators:[TosaOperator] tensors:[TosaTensor] inputs:[str] outputs:[str] "
        "shapes:[TosaShape]"
    ),
    "TosaGraph": "version:Version regions:[TosaRegion]",
    "TosaOperator": ("op:u32 attribute:<Attribute> inputs:[str] outputs:[str] location:OpLocation"),
    "TosaRegion": "name:str blocks:[TosaBasicBlock]",
    "TosaShape": "name:str rank:u32 data:[u8]",
    "TosaTensor": (
        "name:str shape:[i32] type:u32 data:[u8] variable:bool is_unranked:bool "
        "variable_name:str offset:u64 size:u64"
    ),
    "Version": "_major:i32=-1 _minor:i32=-1 _patch:i32=-1 _draft:bool=1",
}

UNIONS = {"Attribute": ("NONE", *(table for table, _ in OPERATIONS.values()))}
