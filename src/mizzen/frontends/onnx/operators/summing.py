"""Operators that sum: reductions, normalisations, recurrent layers."""

from __future__ import annotations

from mizzen.frontends.onnx.operators.row import Operator, each, missing

REDUCING: tuple[Operator, ...] = (
    Operator("Sum", "totals:total"),
    Operator("Mean", "totals:mean"),
    Operator("ReduceSum", "reductions:sum_"),
    Operator("ReduceMean", "reductions:mean_"),
    *each("ReduceMax ReduceMin", "reductions:extreme"),
    Operator("ReduceL1", "reductions:absolute_sum"),
    Operator("ReduceSumSquare", "reductions:square_sum"),
    Operator("ReduceLogSumExp", "reductions:log_sum_exp"),
    Operator("ReduceL2", missing("a norm takes the root of a sum")),
    Operator("ReduceProd", missing("a product of many numbers leaves 32 bits")),
    Operator("ReduceLogSum", missing("it takes the logarithm of a sum")),
    *each("ArgMax ArgMin", "reductions:arg_extreme"),
    Operator("TopK", "reductions:top_k"),
    Operator("CumSum", "reductions:cumulative_sum", 11),
    Operator("Einsum", "sums_of_products:einsum", 12),
)

NORMALIZING: tuple[Operator, ...] = (
    Operator("BatchNormalization", "norms:batch_normalization"),
    Operator("LayerNormalization", "norms:layer_normalization", 17),
    Operator("RMSNormalization", "norms:rms_normalization", 23),
    Operator("InstanceNormalization", "norms:instance_normalization"),
    Operator("GroupNormalization", "norms:group_normalization", 18),
    Operator("MeanVarianceNormalization", "norms:mean_variance_normalization", 9),
)

RECURRENT: tuple[Operator, ...] = (*each("LSTM GRU RNN", "recurrences:recurrent"),)
