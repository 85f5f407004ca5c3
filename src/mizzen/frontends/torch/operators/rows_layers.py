"""Layers: convolutions, pools, norms, reductions, products, recurrences."""

from __future__ import annotations

from mizzen.frontends.torch.operators.row import UNIT, Missing, Operator, Role, each, missing, row
from mizzen.frontends.torch.operators.rows_elementwise import DECOMPOSED

VOLUMES = missing("volumes have no form on an NPU")
APART = missing("PyTorch takes it apart")
TRAINED = missing("it measures each batch, as training does")
INDEX = Missing(
    "its result has 64 bits, which no NPU gives",
    "take the index on the host: it costs one pass over the outputs",
)
QUANTIZED = missing("it computes with integers")

LAYERS: tuple[Operator, ...] = (
    # Weights; `channel_axis` is that of the output channels.
    row("conv2d.default conv2d.padding conv1d.default conv1d.padding", Role.WEIGHTED,
        channel_axis=0, cuttable=True, integers="convolution", floats="convolution"),
    row("convolution.default", Role.WEIGHTED, channel_axis=0, integers="convolution",
        floats="convolution"),
    row("conv_transpose2d.input conv_transpose1d.default", Role.WEIGHTED, channel_axis=1,
        cuttable=True, integers="convolution", floats="convolution"),
    row("conv3d.default conv3d.padding", Role.WEIGHTED, channel_axis=0, cuttable=True,
        both=VOLUMES),
    row("conv_transpose3d.input", Role.WEIGHTED, channel_axis=1, both=VOLUMES),
    row("linear.default", Role.WEIGHTED, channel_axis=0, cuttable=True, integers="convolution",
        floats="convolution"),
    # Products of matrices.
    row("matmul.default linalg_matmul.default mm.default", Role.COMPUTED, cuttable=True,
        decomposition="arithmetic:matmul", integers="convolution", floats="matmul"),
    row("bmm.default", Role.COMPUTED, cuttable=True, decomposition="arithmetic:matmul",
        integers="convolution:matmul", floats="matmul:matmul"),
    *each("mv dot", decomposition="arithmetic:vectors", integers=DECOMPOSED,
          floats="matmul:matmul"),
    row("addmm.default", decomposition="arithmetic:addmm", integers=DECOMPOSED, floats="matmul"),
    row("baddbmm.default", decomposition="arithmetic:baddbmm", integers=DECOMPOSED,
        floats="matmul:addmm"),
    row("scaled_dot_product_attention.default", decomposition="arithmetic:attention",
        integers=DECOMPOSED, floats="matmul"),
    *each("""bilinear chain_matmul cross diff einsum inner kron outer|ger pairwise_distance
          tensordot""", decomposition="arithmetic:compound", integers=DECOMPOSED, floats=APART),
    row("cosine_similarity.default", decomposition="arithmetic:cosine_similarity",
        integers=DECOMPOSED, floats=APART),
    # Pools and images.
    row("max_pool2d.default max_pool1d.default", Role.SHARED, both="windows"),
    row("max_pool2d_with_indices.default", Role.SHARED, both="windows"),
    row("avg_pool2d.default avg_pool1d.default", Role.SHARED, integers="reduction",
        floats="reduction"),
    row("adaptive_avg_pool2d.default adaptive_avg_pool1d.default _adaptive_avg_pool2d.default",
        Role.SHARED, integers="reduction", floats="reduction"),
    row("adaptive_max_pool2d.default adaptive_max_pool1d.default", Role.SHARED, both="windows"),
    row("avg_pool3d.default max_pool3d_with_indices.default _adaptive_avg_pool3d.default",
        both=VOLUMES),
    row("upsample_nearest2d.vec upsample_nearest2d.default upsample_nearest1d.vec "
        "upsample_nearest1d.default", Role.SHARED, integers="resize", floats="resize"),
    row("upsample_bilinear2d.vec upsample_bilinear2d.default upsample_linear1d.vec "
        "upsample_linear1d.default", Role.SHARED, integers="resize", floats="resize"),
    row("grid_sampler_2d.default", both=missing("it looks pixels up at computed places")),
    row("col2im.default", both=missing("it adds patches up where they overlap")),
    # Reductions.
    row("sum.dim_IntList sum.default", Role.COMPUTED, integers="reduction", floats="reduction"),
    row("mean.dim mean.default", Role.COMPUTED, integers="reduction", floats="reduction"),
    row("amax.default", Role.SHARED, both="choice"),
    row("amin.default", Role.SHARED, both="choice"),
    row("max.default", Role.SHARED, both="choice:amax"),
    row("min.default", Role.SHARED, both="choice:amin"),
    row("max.dim", Role.SHARED, integers="reduction:max_dim", floats="reduction:max_dim"),
    row("min.dim", Role.SHARED, integers="reduction:max_dim", floats="reduction:max_dim"),
    *each("argmax argmin", Role.CONSUMED, integers=INDEX, floats="reduction:argmax"),
    row("any.default any.dim any.dims", both="choice"),
    row("all.default all.dim all.dims", both="choice"),
    row("prod.default prod.dim_int", Role.COMPUTED, floats="reduction",
        integers=missing("no NPU multiplies along a dimension")),
    row("cumsum.default", Role.COMPUTED, integers="reduction", floats="reduction"),
    row("var.correction var.dim", Role.COMPUTED, decomposition="arithmetic:var",
        integers=DECOMPOSED, floats="reduction"),
    row("std.correction std.dim", Role.COMPUTED, decomposition="arithmetic:std",
        integers=DECOMPOSED, floats="reduction:var"),
    row("var_mean.correction", integers=missing("its two results have ranges inside"),
        floats="reduction"),
    row("linalg_vector_norm.default", decomposition="arithmetic:linalg_vector_norm",
        integers=DECOMPOSED, floats="reduction:norm"),
    row("norm.ScalarOpt_dim norm.Scalar", decomposition="arithmetic:linalg_vector_norm",
        integers=DECOMPOSED, floats="reduction:norm"),
    row("softmax.int _softmax.default", Role.FIXED, range=UNIT,
        decomposition="arithmetic:softmax", integers=DECOMPOSED, floats="reduction"),
    row("log_softmax.int _log_softmax.default", Role.COMPUTED,
        decomposition="arithmetic:log_softmax", integers=DECOMPOSED, floats="reduction"),
    row("logsumexp.default special_logsumexp.default", decomposition="arithmetic:logsumexp",
        integers=DECOMPOSED, floats="reduction"),
    # Norms.
    row("batch_norm.default", decomposition="arithmetic:batch_norm", integers=DECOMPOSED,
        floats="normalization"),
    row("_native_batch_norm_legit_no_training.default native_batch_norm.default",
        integers=DECOMPOSED, floats="normalization:batch_norm"),
    row("_native_batch_norm_legit.default _native_batch_norm_legit.no_stats", both=TRAINED),
    row("layer_norm.default", decomposition="arithmetic:layer_norm", integers=DECOMPOSED,
        floats="normalization"),
    row("native_layer_norm.default", integers=DECOMPOSED, floats="normalization:layer_norm"),
    row("group_norm.default", decomposition="arithmetic:group_norm", integers=DECOMPOSED,
        floats="normalization"),
    row("native_group_norm.default", integers=DECOMPOSED, floats="normalization:group_norm"),
    row("instance_norm.default", decomposition="arithmetic:instance_norm",
        integers=DECOMPOSED, floats="normalization"),
    row("rms_norm.default", decomposition="arithmetic:rms_norm", integers=DECOMPOSED,
        floats="normalization"),
    # Recurrent layers, and the operators that the quantiser makes of them.
    *each("lstm.input gru.input rnn_tanh.input rnn_relu.input",
          decomposition="layers:replace_layers", integers=DECOMPOSED, floats="recurrent"),
    row("lstm.data gru.data rnn_tanh.data rnn_relu.data",
        both=missing("it packs sequences of lengths that depend on data")),
    *each("mizzen.lstm_steps_quantized.default mizzen.gru_steps_quantized.default "
          "mizzen.rnn_steps_quantized.default", integers="recurrent", floats=QUANTIZED),
)  # fmt: skip
