"""Operators that move elements, copy them or look them up."""

from __future__ import annotations

from mizzen.frontends.torch.operators.row import Missing, Operator, Role, each, missing, row

INDICES = Missing(
    "its indices have 64 bits, which no NPU takes",
    "look up on the host, and give the model the rows",
)
SCATTERED = missing("it writes elements at indices of 64 bits")
STRIDED = missing("it looks at memory, and tensors of TOSA have no strides")
JOINED = missing("PyTorch takes it apart")

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
        both="movement:clone"),
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
          decomposition="arithmetic:compound", both=JOINED),
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
    *each("embedding index_select gather", Role.SHARED, integers=INDICES, floats="gather"),
    row("index.Tensor", Role.SHARED, integers=INDICES, floats="gather"),
    row("index_put.default index_copy.default scatter.src scatter.value scatter.reduce "
        "scatter.value_reduce", Role.SHARED, both=SCATTERED),
    row("scatter_add.default scatter_reduce.two masked_scatter.default", both=SCATTERED),
    row("as_strided.default diagonal.default unfold.default", Role.SHARED, both=STRIDED),
    row("as_strided_copy.default view.dtype resize_.default", both=STRIDED),
    # Constants, whatever the values of the operands are.
    row(
        """zeros_like.default ones_like.default full_like.default
        new_zeros.default new_ones.default new_full.default
        arange.default arange.start arange.start_step linspace.default eye.default eye.m
        full.default ones.default zeros.default scalar_tensor.default tril_indices.default""",
        is_source=True,
        both=missing("it depends on no numbers"),
    ),
    row("empty_like.default new_empty.default", is_source=True,
        both=missing("nobody has set what it gives")),
    row("empty.memory_format empty_strided.default", both=missing("nobody has set what it gives")),
    row("fill.Scalar fill.Tensor copy.default", both=missing("it writes to a tensor in place")),
)  # fmt: skip
