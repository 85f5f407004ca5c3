"""The operators of TensorFlow Lite Micro: how a resolver adds them, and their sources.

Ref: tflite-micro 90b983c, tensorflow/lite/micro/micro_mutable_op_resolver.h; sources are those that
an operator does not link without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

KERNELS = "tensorflow/lite/micro/kernels"
SIGNAL_KERNELS = "signal/micro/kernels"
SIGNAL_SOURCES = "signal/src"
_FFT = " ".join(f"kiss_fft_wrappers/kiss_fft_{name}" for name in ("float", "int16", "int32"))


@dataclass(frozen=True, slots=True)
class TflmOperator:
    """An operator.

    kind     its name in a network: the builtin operator's, or the custom operator's code
    method   of `MicroMutableOpResolver`, which adds it
    sources  files in the repository
    """

    kind: str
    method: str
    sources: tuple[str, ...]


def _kernel(kind: str, name: str, *stems: str) -> TflmOperator:
    """Return a row; a stem that ends in ``*`` is two files, the second one `_common`."""
    sources: list[str] = []
    for stem in stems or (kind.lower(),):
        base = f"{KERNELS}/{stem.removesuffix('*')}"
        sources.append(f"{base}.cc")
        if stem.endswith("*"):
            sources.append(f"{base}_common.cc")
    return TflmOperator(kind, f"Add{name}", tuple(sources))


def _signal(kind: str, kernels: str, sources: str) -> TflmOperator:
    """Return the row of an operator on sound, from names of files in two folders."""
    files = [f"{SIGNAL_KERNELS}/{name}.cc" for name in kernels.split()]
    files += [f"{SIGNAL_SOURCES}/{name}.cc" for name in sources.split()]
    return TflmOperator(kind, f"Add{kind.removeprefix('Signal')}", tuple(files))


_ROWS = (
    _kernel("ABS", "Abs", "elementwise"),
    _kernel("ADD", "Add", "add*"),
    _kernel("ADD_N", "AddN"),
    _kernel("ARG_MAX", "ArgMax", "arg_min_max"),
    _kernel("ARG_MIN", "ArgMin", "arg_min_max"),
    _kernel("ASSIGN_VARIABLE", "AssignVariable"),
    _kernel("AVERAGE_POOL_2D", "AveragePool2D", "pooling*"),
    _kernel("BATCH_MATMUL", "BatchMatMul", "batch_matmul*"),
    _kernel("BATCH_TO_SPACE_ND", "BatchToSpaceNd"),
    _kernel("BROADCAST_ARGS", "BroadcastArgs"),
    _kernel("BROADCAST_TO", "BroadcastTo"),
    _kernel("CALL_ONCE", "CallOnce"),
    _kernel("CAST", "Cast"),
    _kernel("CEIL", "Ceil"),
    _kernel("CIRCULAR_BUFFER", "CircularBuffer", "circular_buffer*"),
    _kernel("CONCATENATION", "Concatenation"),
    _kernel("CONV_2D", "Conv2D", "conv*"),
    _kernel("COS", "Cos", "elementwise"),
    _kernel("CUMSUM", "CumSum"),
    _kernel("DEPTHWISE_CONV_2D", "DepthwiseConv2D", "conv_common", "depthwise_conv*"),
    _kernel("DEPTH_TO_SPACE", "DepthToSpace"),
    _kernel("DEQUANTIZE", "Dequantize", "dequantize*"),
    _kernel("DIV", "Div"),
    _kernel("DYNAMIC_UPDATE_SLICE", "DynamicUpdateSlice"),
    _kernel("ELU", "Elu"),
    _kernel("EMBEDDING_LOOKUP", "EmbeddingLookup"),
    _kernel("EQUAL", "Equal", "comparisons"),
    _kernel("EXP", "Exp"),
    _kernel("EXPAND_DIMS", "ExpandDims"),
    _kernel("FILL", "Fill"),
    _kernel("FLOOR", "Floor"),
    _kernel("FLOOR_DIV", "FloorDiv"),
    _kernel("FLOOR_MOD", "FloorMod"),
    _kernel("FULLY_CONNECTED", "FullyConnected", "fully_connected*"),
    _kernel("GATHER", "Gather"),
    _kernel("GATHER_ND", "GatherNd"),
    _kernel("GREATER", "Greater", "comparisons"),
    _kernel("GREATER_EQUAL", "GreaterEqual", "comparisons"),
    _kernel("HARD_SWISH", "HardSwish", "hard_swish*"),
    _kernel("IF", "If"),
    _kernel("L2_NORMALIZATION", "L2Normalization", "l2norm"),
    _kernel("L2_POOL_2D", "L2Pool2D"),
    _kernel("LEAKY_RELU", "LeakyRelu", "leaky_relu*"),
    _kernel("LESS", "Less", "comparisons"),
    _kernel("LESS_EQUAL", "LessEqual", "comparisons"),
    _kernel("LOG", "Log", "elementwise"),
    _kernel("LOGICAL_AND", "LogicalAnd", "logical*"),
    _kernel("LOGICAL_NOT", "LogicalNot", "elementwise"),
    _kernel("LOGICAL_OR", "LogicalOr", "logical*"),
    _kernel("LOGISTIC", "Logistic", "logistic*"),
    _kernel("LOG_SOFTMAX", "LogSoftmax"),
    _kernel("MAXIMUM", "Maximum", "maximum_minimum"),
    _kernel("MAX_POOL_2D", "MaxPool2D", "pooling*"),
    _kernel("MEAN", "Mean", "reduce*"),
    _kernel("MINIMUM", "Minimum", "maximum_minimum"),
    _kernel("MIRROR_PAD", "MirrorPad"),
    _kernel("MUL", "Mul", "mul*"),
    _kernel("NEG", "Neg"),
    _kernel("NOT_EQUAL", "NotEqual", "comparisons"),
    _kernel("PACK", "Pack"),
    _kernel("PAD", "Pad", "pad*"),
    _kernel("PADV2", "PadV2", "pad*"),
    _kernel("PRELU", "Prelu", "prelu*"),
    _kernel("QUANTIZE", "Quantize", "quantize*"),
    _kernel("READ_VARIABLE", "ReadVariable"),
    _kernel("REDUCE_ALL", "ReduceAll", "reduce*"),
    _kernel("REDUCE_MAX", "ReduceMax", "reduce*"),
    _kernel("REDUCE_MIN", "ReduceMin", "reduce*"),
    _kernel("RELU", "Relu", "activations*"),
    _kernel("RELU6", "Relu6", "activations*"),
    _kernel("RESHAPE", "Reshape", "reshape*"),
    _kernel("RESIZE_BILINEAR", "ResizeBilinear"),
    _kernel("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor"),
    _kernel("REVERSE_V2", "ReverseV2", "reverse"),
    _kernel("ROUND", "Round"),
    _kernel("RSQRT", "Rsqrt", "elementwise"),
    _kernel("SELECT_V2", "SelectV2", "select"),
    _kernel("SHAPE", "Shape"),
    _kernel("SIN", "Sin", "elementwise"),
    _kernel("SLICE", "Slice"),
    _kernel("SOFTMAX", "Softmax", "softmax*"),
    _kernel("SPACE_TO_BATCH_ND", "SpaceToBatchNd"),
    _kernel("SPACE_TO_DEPTH", "SpaceToDepth"),
    _kernel("SPLIT", "Split"),
    _kernel("SPLIT_V", "SplitV"),
    _kernel("SQRT", "Sqrt", "elementwise"),
    _kernel("SQUARE", "Square", "elementwise"),
    _kernel("SQUARED_DIFFERENCE", "SquaredDifference"),
    _kernel("SQUEEZE", "Squeeze"),
    _kernel("STRIDED_SLICE", "StridedSlice", "strided_slice*"),
    _kernel("SUB", "Sub", "sub*"),
    _kernel("SUM", "Sum", "reduce*"),
    _kernel("SVDF", "Svdf", "svdf*"),
    _kernel("TANH", "Tanh"),
    _kernel(
        "TFLM_DECODE",
        "Decode",
        "decode",
        "decode_state",
        "decode_state_huffman",
        "decode_state_lut",
        "decode_state_prune",
    ),
    _kernel("TFLite_Detection_PostProcess", "DetectionPostprocess", "detection_postprocess"),
    _kernel("TRANSPOSE", "Transpose", "transpose*"),
    _kernel("TRANSPOSE_CONV", "TransposeConv"),
    _kernel(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTM",
        "fully_connected_common",
        "lstm_eval*",
        "unidirectional_sequence_lstm",
    ),
    _kernel("UNPACK", "Unpack"),
    _kernel("VAR_HANDLE", "VarHandle"),
    _kernel("WHILE", "While"),
    _kernel("ZEROS_LIKE", "ZerosLike"),
    _kernel("ethos-u", "EthosU", "ethos_u/ethosu"),
    _signal("SignalDelay", "delay", "circular_buffer"),
    _signal("SignalEnergy", "energy", "energy"),
    _signal(
        "SignalFftAutoScale",
        "fft_auto_scale_common fft_auto_scale_kernel",
        "fft_auto_scale max_abs msb_32",
    ),
    _signal("SignalFilterBank", "filter_bank", "filter_bank"),
    _signal("SignalFilterBankLog", "filter_bank_log", "filter_bank_log log msb_32"),
    _signal(
        "SignalFilterBankSpectralSubtraction",
        "filter_bank_spectral_subtraction",
        "filter_bank_spectral_subtraction",
    ),
    _signal(
        "SignalFilterBankSquareRoot",
        "filter_bank_square_root filter_bank_square_root_common",
        "filter_bank_square_root msb_32 msb_64 square_root_32 square_root_64",
    ),
    _signal("SignalFramer", "framer", "circular_buffer"),
    _signal(
        "SignalIrfft",
        "irfft",
        f"irfft_float irfft_int16 irfft_int32 {_FFT}",
    ),
    _signal("SignalOverlapAdd", "overlap_add", "overlap_add"),
    _signal("SignalPCAN", "pcan", "msb_32 pcan_argc_fixed"),
    _signal(
        "SignalRfft",
        "rfft",
        f"rfft_float rfft_int16 rfft_int32 {_FFT}",
    ),
    _signal("SignalStacker", "stacker", "circular_buffer"),
    _signal("SignalWindow", "window", "window"),
)

OPERATORS: Mapping[str, TflmOperator] = {operator.kind: operator for operator in _ROWS}


def sources_of(operators: Iterable[TflmOperator]) -> Sequence[str]:
    """Return the files of some operators, each once."""
    return list(dict.fromkeys(name for operator in operators for name in operator.sources))
