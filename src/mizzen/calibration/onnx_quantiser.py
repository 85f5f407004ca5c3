"""ONNX Runtime's static quantiser, called with everything that it may choose pinned.

Ref: ONNX Runtime, onnxruntime/quantization/quantize.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.calibration.onnx_graph import opset
from mizzen.calibration.scheme import Activations, Method, Scheme
from mizzen.calibration.seen import Sample
from mizzen.calibration.silence import silence
from mizzen.diagnostics import fail
from mizzen.files import temporary_folder

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

OPSETS = {Activations.INT8: 13, Activations.INT16: 21}
"""The first version whose QuantizeLinear has channels, or 16 bits. Ref: ONNX, Operators.md."""

_TYPES = (
    "Abs Add AveragePool BatchNormalization Celu Clip Concat Conv ConvTranspose Cos CumSum "
    "DepthToSpace Div Elu Erf Exp Expand Flatten Gather GatherElements Gelu Gemm GlobalAveragePool "
    "GlobalMaxPool HardSigmoid HardSwish InstanceNormalization LayerNormalization LeakyRelu Log "
    "LogSoftmax LpPool MatMul Max MaxPool Mean Min Mish Mul Neg PRelu Pad Pow Reciprocal ReduceL2 "
    "ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Resize Selu Sigmoid Sin Slice Softmax "
    "Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tanh ThresholdedRelu Tile "
    "Transpose Unsqueeze Where"
)
TYPES = _TYPES.split()
"""Types of operators that are quantised; all others stay in floating point."""

KEEP_WEIGHTS = "QDQDisableWeightAdjustForInt32Bias"
"""Leave weights as they are whose bias does not fit: widening them fails for some products."""


class _Reader:
    """Samples as the quantiser takes them."""

    def __init__(self, names: Sequence[str], samples: Sequence[Sample]) -> None:
        self._names = names
        self._samples = iter(samples)

    def get_next(self) -> dict[str, Array] | None:
        """Return the next sample, None after the last."""
        sample = next(self._samples, None)
        if sample is None:
            return None
        # One number of an array is none any more.
        return dict(zip(self._names, map(np.asarray, sample), strict=True))


def quantised(
    model: Any,
    inputs: Sequence[str],
    samples: Sequence[Sample],
    scheme: Scheme,
    excluded: Sequence[str],
) -> Any:
    """Return the quantised network of a prepared one, both as `ModelProto`.

    excluded  names of nodes that stay in floating point

    Raises E198 for a network that the quantiser does not take.
    """
    onnx: Any = import_module("onnx")
    with temporary_folder() as folder, silence():
        source, result = folder / "float.onnx", folder / "quantised.onnx"
        onnx.save(model, str(source))
        said: list[str] = []
        for options in ({}, {KEEP_WEIGHTS: True}):
            given = {**_options(model, scheme), **options}
            try:
                _quantise(source, result, _Reader(inputs, samples), scheme, excluded, given)
                return onnx.load(str(result))
            except Exception as error:
                said.append(" ".join(str(error).split()) or type(error).__name__)
    raise fail(
        "E198",
        f"ONNX Runtime must be able to quantise the network, and says: {said[-1]}",
        help="keep the operator that it names in floating point with --keep-float, or end the "
        "network before it with --cut",
    )


def _quantise(
    source: Path,
    result: Path,
    reader: _Reader,
    scheme: Scheme,
    excluded: Sequence[str],
    options: dict[str, Any],
) -> None:
    ort: Any = import_module("onnxruntime.quantization")
    methods = {
        Method.MINMAX: ort.CalibrationMethod.MinMax,
        Method.PERCENTILE: ort.CalibrationMethod.Percentile,
        Method.ENTROPY: ort.CalibrationMethod.Entropy,
    }
    wide = scheme.activations is Activations.INT16
    ort.quantize_static(
        str(source),
        str(result),
        reader,
        quant_format=ort.QuantFormat.QDQ,
        op_types_to_quantize=TYPES,
        per_channel=True,
        reduce_range=False,
        activation_type=ort.QuantType.QInt16 if wide else ort.QuantType.QInt8,
        weight_type=ort.QuantType.QInt8,
        nodes_to_exclude=list(excluded),
        calibrate_method=methods[scheme.method or Method.MINMAX],
        extra_options=options,
    )


def _options(model: Any, scheme: Scheme) -> dict[str, Any]:
    """Return what is asked besides: 16 bits have no zero point, and every operator is quantised."""
    wide = scheme.activations is Activations.INT16
    return {
        "ActivationSymmetric": wide,
        "WeightSymmetric": True,
        "ForceQuantizeNoInputCheck": True,
        "UseQDQContribOps": wide and opset(model) < OPSETS[Activations.INT16],
        "TensorQuantOverrides": {name: [{"symmetric": True}] for name in _of_one_scale(model)},
    }


def _of_one_scale(model: Any) -> Iterator[str]:
    """Return weights without a scale for each channel: of transposed convolutions in groups.

    The channels along their axis are those of one group, and the quantiser gives the bias, which
    has all, as many scales as that.
    """
    held = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        groups = {each.name: each.i for each in node.attribute}.get("group", 1)
        if node.op_type == "ConvTranspose" and groups > 1 and node.input[1] in held:
            yield str(node.input[1])
