"""Operators of core ATen that no profile has a form of, and why."""

from __future__ import annotations

from mizzen.frontends.torch.operators.row import Operator, missing, row

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
