"""The rows of all operators, by what they do.

Operators on each number (functions, arithmetic, comparisons, choices); those that move elements,
copy them or look them up; layers (convolutions, pools, norms, reductions, products, recurrences);
and operators of core ATen that no profile has a form of, and why.
"""

from __future__ import annotations

from mizzen.frontends.torch.operators.row import (
    SIGNED_UNIT,
    UNIT,
    Missing,
    Operator,
    Role,
    each,
    missing,
    row,
)

DECOMPOSED = Missing(
    "it has no integers in one step, and was not taken apart before calibration",
    "quantise with EthosUQuantizer, which does so where it can",
)

TABLE = "elementwise:unary"
"""A function of each number that has nothing to choose."""

NO_ARC = missing("TOSA has no inverse of a trigonometric or hyperbolic function")
NO_REMAINDER = missing("a remainder is of the exact quotient, which TOSA does not have")
APART = missing("PyTorch takes it apart")
INTEGER_TRUTHS = missing("integers have no quantised form")

ELEMENTWISE: tuple[Operator, ...] = (
    # Functions of each number: an integer's is a table.
    *each(
        """silu hardswish mish log_sigmoid exp expm1|special_expm1 log log2 log10
        log1p|special_log1p sqrt rsqrt reciprocal square tan sinh cosh
        exp2|special_exp2 erfc|special_erfc""",
        Role.COMPUTED,
        integers=TABLE,
        floats=TABLE,
    ),
    *each("sigmoid|special_expit hardsigmoid", Role.FIXED, range=UNIT, integers=TABLE,
          floats=TABLE),
    *each("tanh sin cos erf|special_erf", Role.FIXED, range=SIGNED_UNIT, integers=TABLE,
          floats=TABLE),
    *each("floor ceil trunc|fix sign|sgn abs|absolute neg|negative", Role.COMPUTED,
          integers=TABLE, floats="elementwise:whole"),
    *each("gelu elu celu selu leaky_relu softplus hardshrink softshrink threshold round",
          Role.COMPUTED, integers=TABLE, floats="elementwise"),
    *each(
        """acos|arccos acosh|arccosh asin|arcsin atanh|arctanh erfinv|special_erfinv
        logit|special_logit""",
        Role.COMPUTED,
        ends_at_one=True,
        integers=TABLE,
        floats=NO_ARC,
    ),
    *each("asinh|arcsinh atan|arctan", Role.COMPUTED, integers=TABLE, floats=NO_ARC),
    row("frac.default", Role.COMPUTED, integers=TABLE, floats=APART),
    *each("tril triu", decomposition="arithmetic:triangle", integers=DECOMPOSED, floats=APART),
    row("round.decimals", Role.COMPUTED, integers=TABLE,
        floats=missing("TOSA rounds to whole numbers only")),
    *each("relu relu6 hardtanh clamp|clip clamp_min clamp_max", Role.COMPUTED,
          integers="elementwise:clamp", floats="elementwise:clamp"),
    row("clamp.Tensor clip.Tensor clamp_min.Tensor clamp_max.Tensor", Role.COMPUTED,
        decomposition="arithmetic:clamp", integers=DECOMPOSED, floats="elementwise:clamp_tensor"),
    row("prelu.default _prelu_kernel.default", Role.COMPUTED, decomposition="arithmetic:prelu",
        integers=Missing("its slopes are above 1, or not constant", "use a leaky ReLU"),
        floats="elementwise"),
    row("glu.default", Role.COMPUTED, decomposition="arithmetic:glu", integers=DECOMPOSED,
        floats="elementwise"),
    # Arithmetic; `sub(x, y)` of numbers without a tensor is a table too.
    row("add.Tensor", Role.COMPUTED, cuttable=True, decomposition="arithmetic:unscale",
        integers="elementwise", floats="elementwise"),
    row("sub.Tensor subtract.Tensor", Role.COMPUTED, cuttable=True,
        decomposition="arithmetic:unscale", integers="elementwise", floats="elementwise"),
    row("mul.Tensor multiply.Tensor", Role.COMPUTED, cuttable=True,
        decomposition="arithmetic:mul", integers="elementwise", floats="elementwise"),
    row("div.Tensor divide.Tensor true_divide.Tensor", Role.COMPUTED,
        decomposition="arithmetic:div", integers=DECOMPOSED, floats="elementwise"),
    *each("add.Scalar sub.Scalar|subtract.Scalar mul.Scalar|multiply.Scalar rsub.Scalar",
          Role.COMPUTED, integers=TABLE, floats="elementwise"),
    row("div.Scalar divide.Scalar true_divide.Scalar", Role.COMPUTED, integers=TABLE,
        floats="elementwise"),
    row("div.Tensor_mode divide.Tensor_mode", Role.DIVIDED, decomposition="arithmetic:div_mode",
        integers="division", floats="elementwise"),
    row("floor_divide.default floor_divide.Scalar", Role.DIVIDED,
        integers="division:div", floats=APART),
    row("div.Scalar_mode divide.Scalar_mode", Role.COMPUTED, integers=TABLE, floats="elementwise"),
    row("rsub.Tensor", Role.COMPUTED, decomposition="arithmetic:rsub", integers=DECOMPOSED,
        floats="elementwise"),
    row("remainder.Scalar", Role.COMPUTED, integers=TABLE, floats=NO_REMAINDER),
    row("fmod.Scalar", Role.COMPUTED, integers=TABLE, floats=NO_REMAINDER),
    row("remainder.Tensor remainder.Scalar_Tensor", Role.DIVIDED, integers="division",
        floats=NO_REMAINDER),
    row("fmod.Tensor", Role.DIVIDED, integers="division", floats=NO_REMAINDER),
    *each("pow.Tensor_Scalar pow.Scalar", Role.COMPUTED, integers=TABLE, floats="elementwise"),
    row("pow.Tensor_Tensor", Role.COMPUTED, floats="elementwise",
        integers=missing("a power of two tensors is no table of one")),
    row("atan2.default atan2.out arctan2.default", None, both=NO_ARC),
    row("addcdiv.default", decomposition="arithmetic:addcdiv", integers=DECOMPOSED, floats=APART),
    row("addcmul.default", Role.COMPUTED, decomposition="arithmetic:addcmul", integers=DECOMPOSED,
        floats=missing("PyTorch takes it apart")),
    row("lerp.Tensor lerp.Scalar", Role.COMPUTED, decomposition="arithmetic:lerp",
        integers=DECOMPOSED, floats=missing("PyTorch takes it apart")),
    row("maximum.default max.other fmax.default", Role.SHARED, integers="elementwise",
        floats="elementwise"),
    row("minimum.default min.other fmin.default", Role.SHARED, integers="elementwise",
        floats="elementwise"),
    # Comparisons, truth values, choices.
    *each("eq.Tensor ge.Tensor|greater_equal.Tensor gt.Tensor|greater.Tensor "
          "le.Tensor|less_equal.Tensor lt.Tensor|less.Tensor ne.Tensor|not_equal.Tensor",
          Role.COMPARED, integers="elementwise:compare", floats="elementwise:compare"),
    *each("eq.Scalar ge.Scalar|greater_equal.Scalar gt.Scalar|greater.Scalar "
          "le.Scalar|less_equal.Scalar lt.Scalar|less.Scalar ne.Scalar|not_equal.Scalar",
          Role.COMPARED, integers="elementwise:compare_number", floats="elementwise:compare"),
    *each(
        """logical_and|bitwise_and.Tensor|bitwise_and.Scalar|__and__.Tensor|__and__.Scalar
        logical_or|bitwise_or.Tensor|bitwise_or.Scalar|__or__.Tensor|__or__.Scalar
        logical_xor|bitwise_xor.Tensor|bitwise_xor.Scalar|__xor__.Tensor|__xor__.Scalar""",
        both="choice:logical", integers="bits:logical",
    ),
    row("logical_not.default bitwise_not.default", both="choice", integers="bits"),
    row("""bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar __lshift__.Tensor
        __lshift__.Scalar""", integers="bits:shift_left", floats="elementwise:shift"),
    row("""bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar __rshift__.Tensor
        __rshift__.Scalar""", integers="bits:shift_right", floats="elementwise:shift"),
    row("where.self where.ScalarOther where.ScalarSelf where.Scalar", Role.SHARED, both="choice"),
    row("masked_fill.Scalar masked_fill.Tensor", Role.COMPUTED, both="choice"),
    *each("isinf isposinf isneginf", integers=missing("integers are all finite"),
          floats="elementwise:isinf"),
    row("isnan.default", integers=missing("integers are all numbers"), floats="elementwise"),
    row("nan_to_num.default", Role.SHARED, integers="elementwise", floats="elementwise"),
)  # fmt: skip


SCATTERED = missing("it writes elements at indices of 64 bits")
STRIDED = missing("it looks at memory, and tensors of TOSA have no strides")

MOVEMENT: tuple[Operator, ...] = (
    row(
        """view.default reshape.default reshape_as.default view_as.default _unsafe_view.default
        flatten.using_ints ravel.default unflatten.int unsqueeze.default squeeze.default
        squeeze.dim squeeze.dims atleast_1d.default atleast_2d.default atleast_3d.default""",
        Role.SHARED,
        both="movement",
    ),
    row("clone.default contiguous.default alias.default resolve_conj.default resolve_neg.default",
        Role.SHARED, both="movement"),
    row("detach.default lift_fresh_copy.default lift_fresh.default", Role.TRANSPARENT,
        both="movement:clone"),
    row("dropout.default feature_dropout.default alpha_dropout.default", Role.TRANSPARENT,
        both="movement"),
    row("to.dtype to.dtype_layout to.device to.other type_as.default _to_copy.default",
        decomposition="arithmetic:numbers_of_truths", both="movement:clone",
        integers="conversion:to"),
    row("permute.default", Role.SHARED, both="movement"),
    row("transpose.int swapaxes.default swapdims.default", Role.SHARED, both="movement"),
    row("t.default", Role.SHARED, both="movement:transpose"),
    row("mT.default mH.default adjoint.default", Role.SHARED, both="movement:transpose"),
    row("numpy_T.default", Role.SHARED, both="movement"),
    row("movedim.int movedim.intlist moveaxis.int moveaxis.intlist", Role.SHARED, both="movement"),
    row("slice.Tensor", Role.SHARED, both="movement"),
    row("select.int", Role.SHARED, both="movement"),
    row("narrow.default", Role.SHARED, both="movement"),
    row(
        """split.Tensor split.sizes split_with_sizes.default chunk.default unbind.int
        tensor_split.sections tensor_split.indices unsafe_chunk.default unsafe_split.Tensor
        unsafe_split_with_sizes.default""",
        Role.SHARED,
        both="movement",
    ),
    row("cat.default concat.default concatenate.default", Role.SHARED, both="movement"),
    row("stack.default", Role.SHARED, both="movement"),
    *each("hstack vstack|row_stack dstack column_stack", Role.SHARED,
          decomposition="arithmetic:compound", both=APART),
    row("slice_scatter.default", Role.SHARED, both="movement"),
    row("select_scatter.default", Role.SHARED, both="movement"),
    row("expand.default expand_as.default broadcast_to.default repeat.default tile.default",
        Role.SHARED, both="movement"),
    row("repeat_interleave.self_int", Role.SHARED, both="movement"),
    row("repeat_interleave.Tensor repeat_interleave.self_Tensor", Role.SHARED,
        both=missing("how often it repeats depends on data")),
    row("flip.default", Role.SHARED, both="movement"),
    row("roll.default", Role.SHARED, both="movement"),
    row("pad.default constant_pad_nd.default", Role.SHARED, both="movement"),
    *each("reflection_pad1d|reflection_pad2d|reflection_pad3d "
          "replication_pad1d|replication_pad2d|replication_pad3d", Role.SHARED,
          both="movement:edge_pad"),
    row("pixel_shuffle.default", Role.SHARED, both="movement"),
    row("pixel_unshuffle.default", Role.SHARED, both="movement"),
    row("channel_shuffle.default", Role.SHARED, both="movement"),
    # Looked up, or written, by index.
    row("embedding.default", Role.SHARED, integers="gather", floats="gather"),
    *each("index_select gather index.Tensor", Role.SHARED, integers="gather", floats="gather"),
    *each("index_put index_copy", Role.SHARED, integers="gather", floats="gather"),
    row("scatter.src scatter.value scatter.reduce "
        "scatter.value_reduce", Role.SHARED, both=SCATTERED),
    row("scatter_add.default scatter_reduce.two masked_scatter.default", both=SCATTERED),
    *each("as_strided diagonal unfold", Role.SHARED, integers="gather", floats=STRIDED),
    row("view.dtype resize_.default", both=STRIDED),
    # Constants, whatever the values of the operands are.
    row(
        """zeros_like.default ones_like.default full_like.default
        new_zeros.default new_ones.default new_full.default
        arange.default arange.start arange.start_step linspace.default eye.default eye.m
        full.default ones.default zeros.default scalar_tensor.default tril_indices.default
        zero.default fill.Scalar""",
        is_source=True,
        both=missing("it depends on no numbers"),
    ),
    row("empty_like.default new_empty.default empty.memory_format empty_strided.default",
        is_source=True, both=missing("nobody has set what it gives")),
    row("fill.Tensor copy.default", decomposition="arithmetic:copy",
        both=missing("it writes to a tensor in place")),
)  # fmt: skip


VOLUMES = missing("volumes have no form on an NPU")
TRAINED = missing("it measures each batch, as training does")
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
        integers="volumes", floats="convolution"),
    row("conv_transpose3d.input", Role.WEIGHTED, channel_axis=1, both=VOLUMES),
    row("linear.default", Role.WEIGHTED, channel_axis=0, cuttable=True,
        decomposition="arithmetic:linear", integers="convolution", floats="convolution"),
    # Products of matrices.
    row("matmul.default linalg_matmul.default mm.default", Role.COMPUTED, cuttable=True,
        decomposition="arithmetic:matmul", integers="convolution", floats="convolution"),
    row("bmm.default", Role.COMPUTED, cuttable=True, decomposition="arithmetic:matmul",
        integers="convolution:matmul", floats="convolution:matmul"),
    *each("mv dot", decomposition="arithmetic:vectors", integers=DECOMPOSED,
          floats="convolution:matmul"),
    row("addmm.default", decomposition="arithmetic:addmm", integers=DECOMPOSED,
        floats="convolution"),
    row("baddbmm.default", decomposition="arithmetic:baddbmm", integers=DECOMPOSED,
        floats="convolution:addmm"),
    row("scaled_dot_product_attention.default", decomposition="attention:attention",
        integers=DECOMPOSED, floats="convolution"),
    *each("""bilinear chain_matmul cross diff einsum inner kron outer|ger pairwise_distance
          tensordot""", decomposition="arithmetic:compound", integers=DECOMPOSED, floats=APART),
    row("cosine_similarity.default", decomposition="arithmetic:cosine_similarity",
        integers=DECOMPOSED, floats=APART),
    # Pools and images.
    row("max_pool2d.default max_pool1d.default", Role.SHARED, both="windows"),
    row("max_pool2d_with_indices.default", Role.SHARED, both="windows"),
    row("avg_pool2d.default", Role.SHARED, decomposition="pooling:avg_pool2d",
        integers="reduction", floats="reduction"),
    row("avg_pool1d.default", Role.SHARED, integers="reduction:avg_pool2d",
        floats="reduction:avg_pool2d"),
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
    *each("argmax argmin", Role.CONSUMED, integers="reduction:argmax", floats="reduction:argmax"),
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
        decomposition="attention:softmax", integers="normalization", floats="reduction"),
    row("log_softmax.int _log_softmax.default", Role.COMPUTED,
        decomposition="attention:log_softmax", integers="normalization", floats="reduction"),
    row("logsumexp.default special_logsumexp.default", Role.COMPUTED,
        decomposition="attention:logsumexp", integers="normalization", floats="reduction"),
    # Norms.
    row("batch_norm.default", decomposition="arithmetic:batch_norm", integers=DECOMPOSED,
        floats="reduction"),
    row("_native_batch_norm_legit_no_training.default native_batch_norm.default",
        integers=DECOMPOSED, floats="reduction:batch_norm"),
    row("_native_batch_norm_legit.default _native_batch_norm_legit.no_stats", both=TRAINED),
    row("layer_norm.default", Role.COMPUTED, decomposition="arithmetic:layer_norm",
        integers="normalization", floats="reduction"),
    row("native_layer_norm.default", integers=DECOMPOSED, floats="reduction:layer_norm"),
    row("group_norm.default", decomposition="arithmetic:group_norm", integers=DECOMPOSED,
        floats="reduction"),
    row("native_group_norm.default", integers=DECOMPOSED, floats="reduction:group_norm"),
    row("instance_norm.default", decomposition="arithmetic:instance_norm",
        integers=DECOMPOSED, floats="reduction"),
    row("rms_norm.default", Role.COMPUTED, decomposition="arithmetic:rms_norm",
        integers="normalization", floats="reduction"),
    # Recurrent layers, and the operators that the quantiser makes of them.
    *each("lstm.input gru.input rnn_tanh.input rnn_relu.input",
          decomposition="layers:replace_layers", integers=DECOMPOSED, floats="recurrent"),
    row("gru_cell.default", decomposition="cells:gru_cell", integers=DECOMPOSED, floats=APART),
    row("lstm_cell.default", decomposition="cells:lstm_cell", integers=DECOMPOSED, floats=APART),
    *each("rnn_tanh_cell rnn_relu_cell", decomposition="cells:rnn_cell", integers=DECOMPOSED,
          floats=APART),
    row("lstm.data gru.data rnn_tanh.data rnn_relu.data",
        both=missing("it packs sequences of lengths that depend on data")),
    *each("mizzen.lstm_steps_quantized.default mizzen.gru_steps_quantized.default "
          "mizzen.rnn_steps_quantized.default", integers="recurrent", floats=QUANTIZED),
)  # fmt: skip


TRAINING = missing("it is of training")
RANDOM = missing("it gives random numbers")
DEPENDENT = missing("the shape of its result depends on data")
SYMBOLIC = missing("it gives a shape, and shapes are static")
COMPLEX = missing("it gives or takes complex numbers")
SORTED = missing("TOSA sorts nothing")
DISTANCES = missing("it compares all pairs of rows: write it as products")

REFUSED: tuple[Operator, ...] = (
    row(
        """_adaptive_avg_pool2d_backward.default avg_pool2d_backward.default
        convolution_backward.default embedding_dense_backward.default
        max_pool2d_with_indices_backward.default native_group_norm_backward.default
        native_layer_norm_backward.default""",
        both=TRAINING,
    ),
    row("rand.default randn.default randperm.default native_dropout.default", both=RANDOM),
    row("nonzero.default _local_scalar_dense.default", both=DEPENDENT),
    row("sym_size.int sym_numel.default sym_stride.int sym_storage_offset.default "
        "sym_is_contiguous.default", both=SYMBOLIC),
    row("_fft_c2r.default _fft_r2c.default", both=COMPLEX),
    row("sort.default sort.stable topk.default", both=SORTED),
    row("_cdist_forward.default _pdist_forward.default", both=DISTANCES),
    row("_embedding_bag.default", both=missing("its bags have sizes that depend on data")),
)  # fmt: skip
