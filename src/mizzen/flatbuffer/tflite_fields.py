"""What becomes of each field of a TFLite file.

What an option says that the types and shapes of tensors say too says nothing: kernels take these
from the tensors. Operators on floating-point numbers that are rounded as they run ("hybrid") are
computed in floating point, and TensorFlow Lite Micro has no others.
"""

from __future__ import annotations

from mizzen.flatbuffer.fields import Fields, Table

WINDOW = "padding stride_w stride_h fused_activation_function"
DILATED = f"{WINDOW} dilation_w_factor dilation_h_factor"
HYBRID = "asymmetric_quantize_inputs"

_ELSEWHERE = "its contents are in another file"
_BLOCKS = "its numbers have scales by blocks, of several axes or of a kind of their own"
_VARIANT = "it holds a list of tensors"
_EXTERNAL = {"id": _ELSEWHERE, "group": _ELSEWHERE, "offset": _ELSEWHERE, "length": _ELSEWHERE,
             "packing": _ELSEWHERE}  # fmt: skip

FIELDS: Table = {
    "Model": Fields(
        read="operator_codes subgraphs buffers metadata signature_defs description",
        silent="version metadata_buffer",
        refused={"external_buffer_groups": _ELSEWHERE, "external_buffers": _ELSEWHERE},
    ),
    "SubGraph": Fields(read="tensors inputs outputs operators name", silent="debug_metadata_index"),
    "Tensor": Fields(
        read="shape type buffer name quantization is_variable sparsity shape_signature",
        silent="has_rank",
        refused={"variant_tensors": _VARIANT, "external_buffer": _ELSEWHERE},
    ),
    "VariantSubType": Fields(refused={"shape": _VARIANT, "type": _VARIANT, "has_rank": _VARIANT}),
    "QuantizationParameters": Fields(
        read="scale zero_point quantized_dimension",
        silent="min max",
        refused={"details": _BLOCKS},
    ),
    "CustomQuantization": Fields(refused={"custom": _BLOCKS}),
    "BlockwiseQuantization": Fields(
        refused=dict.fromkeys(("scales", "zero_points", "block_size", "block_shape"), _BLOCKS)
    ),
    "MultiAxisQuantization": Fields(
        refused=dict.fromkeys(
            ("scales", "zero_points", "block_size", "quantized_dimensions"), _BLOCKS
        )
    ),
    "SparsityParameters": Fields(read="traversal_order block_map dim_metadata"),
    "DimensionMetadata": Fields(read="format dense_size array_segments array_indices"),
    **dict.fromkeys(("Int32Vector", "Uint16Vector", "Uint8Vector"), Fields(read="values")),
    "Buffer": Fields(read="data offset size"),
    "ExternalBuffer": Fields(refused=_EXTERNAL),
    "ExternalBufferGroup": Fields(refused={"name": _ELSEWHERE}),
    "Metadata": Fields(read="name buffer"),
    "SignatureDef": Fields(read="inputs outputs signature_key subgraph_index"),
    "TensorMap": Fields(read="name tensor_index"),
    "OperatorCode": Fields(read="deprecated_builtin_code custom_code version builtin_code"),
    "Operator": Fields(
        read="opcode_index inputs outputs builtin_options custom_options intermediates "
        "large_custom_options_offset large_custom_options_size builtin_options2",
        silent="mutating_variable_inputs debug_metadata_index",
        refused={"custom_options_format": "its options have a form that the schema does not have"},
    ),
    # Operators that are lowered: all that their options say is read.
    "AddOptions": Fields(read="fused_activation_function", silent="pot_scale_int16"),
    "SubOptions": Fields(read="fused_activation_function", silent="pot_scale_int16"),
    "MulOptions": Fields(read="fused_activation_function"),
    "Conv2DOptions": Fields(read=f"{DILATED} quantized_bias_type"),
    "DepthwiseConv2DOptions": Fields(read=f"{DILATED} depth_multiplier"),
    "TransposeConvOptions": Fields(read=WINDOW, silent="quantized_bias_type"),
    "Pool2DOptions": Fields(read=f"{WINDOW} filter_width filter_height"),
    "FullyConnectedOptions": Fields(
        read="fused_activation_function quantized_bias_type",
        silent=f"keep_num_dims {HYBRID}",
        refused={
            "weights_format": "its weights lie in another order",
            "quant_spec": "its numbers are rounded in a way that the schema does not describe",
        },
    ),
    "ConcatenationOptions": Fields(read="axis fused_activation_function"),
    "DepthToSpaceOptions": Fields(read="block_size"),
    "SpaceToDepthOptions": Fields(read="block_size"),
    "GatherOptions": Fields(read="axis batch_dims"),
    "LeakyReluOptions": Fields(read="alpha"),
    "PackOptions": Fields(read="axis", silent="values_count"),
    "UnpackOptions": Fields(read="axis", silent="num"),
    "ReducerOptions": Fields(read="keep_dims"),
    "ReshapeOptions": Fields(silent="new_shape"),
    "SqueezeOptions": Fields(silent="squeeze_dims"),
    "ResizeBilinearOptions": Fields(read="align_corners half_pixel_centers"),
    "ResizeNearestNeighborOptions": Fields(read="align_corners half_pixel_centers"),
    "SoftmaxOptions": Fields(read="beta"),
    "SplitOptions": Fields(silent="num_splits"),
    "SplitVOptions": Fields(silent="num_splits"),
    "StridedSliceOptions": Fields(
        read="begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask offset"
    ),
    "MirrorPadOptions": Fields(read="mode"),
    "FakeQuantOptions": Fields(read="min max num_bits narrow_range"),
    # Operators that are not lowered: the kernels that compute them read what their options say.
    "ArgMaxOptions": Fields(silent="output_type"),
    "ArgMinOptions": Fields(silent="output_type"),
    "BatchMatMulOptions": Fields(carried="adj_x adj_y", silent=HYBRID),
    "BidirectionalSequenceLSTMOptions": Fields(
        carried="fused_activation_function cell_clip proj_clip merge_outputs time_major",
        silent=HYBRID,
    ),
    "BidirectionalSequenceRNNOptions": Fields(
        carried="time_major fused_activation_function merge_outputs", silent=HYBRID
    ),
    "BucketizeOptions": Fields(carried="boundaries"),
    "CallOnceOptions": Fields(read="init_subgraph_index"),
    "CallOptions": Fields(carried="subgraph"),
    "CastOptions": Fields(silent="in_data_type out_data_type"),
    "ConcatEmbeddingsOptions": Fields(
        carried="num_channels num_columns_per_channel embedding_dim_per_channel"
    ),
    "Conv3DOptions": Fields(carried=f"{DILATED} stride_d dilation_d_factor"),
    "CumsumOptions": Fields(carried="exclusive reverse"),
    "DivOptions": Fields(carried="fused_activation_function"),
    "EmbeddingLookupSparseOptions": Fields(carried="combiner"),
    "GeluOptions": Fields(carried="approximate"),
    "HashtableOptions": Fields(carried="table_id key_dtype value_dtype"),
    "IfOptions": Fields(read="then_subgraph_index else_subgraph_index"),
    "L2NormOptions": Fields(carried="fused_activation_function"),
    "LSHProjectionOptions": Fields(carried="type"),
    "LSTMOptions": Fields(
        carried="fused_activation_function cell_clip proj_clip kernel_type", silent=HYBRID
    ),
    "LocalResponseNormalizationOptions": Fields(carried="radius bias alpha beta"),
    "OneHotOptions": Fields(carried="axis"),
    "RNNOptions": Fields(carried="fused_activation_function", silent=HYBRID),
    "RandomOptions": Fields(carried="seed seed2"),
    "ReduceWindowOptions": Fields(carried="reduce_function"),
    "ReverseSequenceOptions": Fields(carried="seq_dim batch_dim"),
    "SVDFOptions": Fields(carried="rank fused_activation_function", silent=HYBRID),
    "SequenceRNNOptions": Fields(carried="time_major fused_activation_function", silent=HYBRID),
    "ShapeOptions": Fields(silent="out_type"),
    "SkipGramOptions": Fields(carried="ngram_size max_skip_size include_all_ngrams"),
    "SparseToDenseOptions": Fields(silent="validate_indices"),
    "UnidirectionalSequenceLSTMOptions": Fields(
        carried="fused_activation_function cell_clip proj_clip time_major",
        silent=HYBRID,
        refused={"diagonal_recurrent_tensors": "its recurrent weights are diagonals of matrices"},
    ),
    "UniqueOptions": Fields(silent="idx_out_type"),
    "VarHandleOptions": Fields(read="container shared_name"),
    "WhileOptions": Fields(read="cond_subgraph_index body_subgraph_index"),
    "StableHLOCompositeOptions": Fields(
        carried="name decomposition_subgraph_index composite_attributes "
        "composite_attributes_format version"
    ),
    "StablehloBroadcastInDimOptions": Fields(carried="broadcast_dimensions"),
    "StablehloCaseOptions": Fields(carried="branch_subgraph_indices"),
    "StablehloCompareOptions": Fields(carried="comparison_direction compare_type"),
    "StablehloConcatenateOptions": Fields(carried="dimension"),
    "StablehloConvolutionOptions": Fields(
        carried="window_strides padding lhs_dilation rhs_dilation window_reversal "
        "input_batch_dimension input_feature_dimension input_spatial_dimensions "
        "kernel_input_feature_dimension kernel_output_feature_dimension "
        "kernel_spatial_dimensions output_batch_dimension output_feature_dimension "
        "output_spatial_dimensions feature_group_count batch_group_count precision_config"
    ),
    "StablehloCustomCallOptions": Fields(
        carried="call_target_name has_side_effect backend_config api_version "
        "called_computations custom_attributes"
    ),
    "StablehloDotGeneralOptions": Fields(
        carried="lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions "
        "rhs_contracting_dimensions precision_config"
    ),
    "StablehloDynamicSliceOptions": Fields(carried="slice_sizes"),
    "StablehloGatherOptions": Fields(
        carried="offset_dims collapsed_slice_dims start_index_map index_vector_dim slice_sizes "
        "indices_are_sorted"
    ),
    "StablehloIotaOptions": Fields(carried="iota_dimension"),
    "StablehloPadOptions": Fields(carried="edge_padding_low edge_padding_high interior_padding"),
    "StablehloReduceOptions": Fields(carried="dimensions body_subgraph_index"),
    "StablehloReduceWindowOptions": Fields(
        carried="window_dimensions window_strides base_dilations window_dilations padding "
        "body_subgraph_index"
    ),
    "StablehloRngBitGeneratorOptions": Fields(carried="algorithm"),
    "StablehloScatterOptions": Fields(
        carried="indices_are_sorted update_window_dims inserted_window_dims "
        "scatter_dims_to_operand_dims index_vector_dim unique_indices "
        "update_computation_subgraph_index"
    ),
    "StablehloSliceOptions": Fields(carried="start_indices limit_indices strides"),
    "StablehloSortOptions": Fields(carried="dimension is_stable comparator_subgraph_index"),
    "StablehloTransposeOptions": Fields(carried="permutation"),
    "StablehloWhileOptions": Fields(carried="cond_subgraph_index body_subgraph_index"),
}
"""Tables whose options say nothing have no entry: they have no fields."""
