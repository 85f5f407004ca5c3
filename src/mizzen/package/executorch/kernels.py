"""Kernels of ExecuTorch's portable library, by the functional operators that they compute.

A row of text is the functional operator's name, the kernel's, and the kernel's arguments in order
without its outputs. ``name%`` is a real number, ``name?`` a list of tensors of which some may be
absent, ``name=...`` one that may be left out: ``false``, ``none``, or ``shape``, which is the
shape of the output whatever came. Names have no ``aten::``.

Ref: ExecuTorch 1.5.1, kernels/portable/functions.yaml, kernels/quantized/quantized.yaml; PyTorch
2.13, native_functions.yaml (schemas).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

ATEN = "aten::"
QUANTIZED = "quantized_decomposed::"

COPY_ = "aten::copy_"
"""What takes over a state at the end of an inference."""


class Form(Enum):
    """How an argument is given."""

    PLAIN = auto()
    REAL = auto()
    SOME_TENSORS = auto()
    TYPE = auto()


class Default(Enum):
    """What an argument is that was left out."""

    FALSE = "false"
    NONE = "none"
    SHAPE = "shape"
    """The shape of the output; what came is not asked."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a kernel; without a default it must be given."""

    name: str
    form: Form = Form.PLAIN
    default: Default | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: its name and overload, and its arguments before the outputs.

    gives_list  whether its outputs are one list of tensors, of which it gives back nothing
    """

    name: str
    overload: str
    parameters: tuple[Parameter, ...]
    gives_list: bool = False

    @property
    def full_name(self) -> str:
        """Name and overload, as the runtime's registry has them."""
        return f"{self.name}.{self.overload}" if self.overload else self.name


_TYPES = ("dtype", "out_dtype")

_LISTS = ("split_copy", "split_with_sizes_copy", "unbind_copy")

_UNARY = (
    "abs acos acosh alias_copy asin asinh atan atanh bitwise_not ceil cos cosh detach_copy erf exp "
    "expm1 floor isinf isnan lift_fresh_copy log log10 log1p log2 logical_not neg reciprocal relu "
    "round rsqrt sigmoid sign sin sinh sqrt t_copy tan tanh trunc"
)

_SCALAR_OR_TENSOR = (
    "bitwise_and bitwise_or bitwise_xor eq fmod ge gt le lt ne remainder"
)  # fmt: skip

_ROWS = """
__lshift__.Scalar             bitwise_left_shift.Tensor_Scalar_out self other
__lshift__.Tensor             bitwise_left_shift.Tensor_out  self other
__rshift__.Scalar             bitwise_right_shift.Tensor_Scalar_out self other
__rshift__.Tensor             bitwise_right_shift.Tensor_out self other
_adaptive_avg_pool2d          _adaptive_avg_pool2d.out       self output_size
_cdist_forward                _cdist_forward.out             x1 x2 p% compute_mode
_log_softmax                  _log_softmax.out               self dim half_to_float
_native_batch_norm_legit_no_training _native_batch_norm_legit_no_training.out input weight bias running_mean running_var momentum% eps%
_pdist_forward                _pdist_forward.out             self p%
_softmax                      _softmax.out                   self dim half_to_float
_to_copy                      _to_copy.out                   self non_blocking=false memory_format=none
_unsafe_view                  view_copy.out                  self size=shape
_upsample_bilinear2d_aa       _upsample_bilinear2d_aa.out    self output_size align_corners scales_h% scales_w%
add.Scalar                    add.Scalar_out                 self other alpha
add.Tensor                    add.out                        self other alpha
addmm                         addmm.out                      self mat1 mat2 beta alpha
alias                         alias_copy.out                 self
amax                          amax.out                       self dim keepdim
amin                          amin.out                       self dim keepdim
any                           any.all_out                    self
any.dim                       any.out                        self dim keepdim
any.dims                      any.dims_out                   self dim keepdim
arange                        arange.out                     end
arange.start_step             arange.start_out               start end step
argmax                        argmax.out                     self dim keepdim
argmin                        argmin.out                     self dim keepdim
as_strided                    as_strided_copy.out            self size stride storage_offset
as_strided_copy               as_strided_copy.out            self size stride storage_offset
atan2                         atan2.out                      self other
avg_pool2d                    avg_pool2d.out                 self kernel_size stride padding ceil_mode count_include_pad divisor_override
bitwise_left_shift.Tensor     bitwise_left_shift.Tensor_out  self other
bitwise_left_shift.Tensor_Scalar bitwise_left_shift.Tensor_Scalar_out self other
bitwise_right_shift.Tensor    bitwise_right_shift.Tensor_out self other
bitwise_right_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar_out self other
bmm                           bmm.out                        self mat2
cat                           cat.out                        tensors dim
clamp                         clamp.out                      self min max
clamp.Tensor                  clamp.Tensor_out               self min max
clone                         clone.out                      self memory_format=none
constant_pad_nd               constant_pad_nd.out            self pad value
convolution                   convolution.out                input weight bias stride padding dilation transposed output_padding groups
copy                          copy.out                       self src non_blocking=false
copy_                         copy_                          self src non_blocking=false
cumsum                        cumsum.out                     self dim dtype
detach                        detach_copy.out                self
diagonal                      diagonal_copy.out              self offset dim1 dim2
diagonal_copy                 diagonal_copy.out              self offset dim1 dim2
div.Scalar                    div.Scalar_out                 self other
div.Scalar_mode               div.Scalar_mode_out            self other rounding_mode
div.Tensor                    div.out                        self other
div.Tensor_mode               div.out_mode                   self other rounding_mode
elu                           elu.out                        self alpha scale input_scale
embedding                     embedding.out                  weight indices padding_idx scale_grad_by_freq sparse
expand                        expand_copy.out                self size implicit=false
expand_copy                   expand_copy.out                self size implicit=false
fill.Scalar                   fill.Scalar_out                self value
fill.Tensor                   fill.Tensor_out                self value
flip                          flip.out                       self dims
floor_divide                  floor_divide.out               self other
full                          full.out                       size fill_value
full_like                     full_like.out                  self fill_value memory_format=none
gather                        gather.out                     self dim index sparse_grad
gelu                          gelu.out                       self approximate
glu                           glu.out                        self dim
grid_sampler_2d               grid_sampler_2d.out            input grid interpolation_mode padding_mode align_corners
hardtanh                      hardtanh.out                   self min_val max_val
index.Tensor                  index.Tensor_out               self indices?
index_put                     index_put.out                  self indices? values accumulate
index_select                  index_select.out               self dim index
leaky_relu                    leaky_relu.out                 self negative_slope
linear                        linear.out                     input weight bias
logical_and                   logical_and.out                self other
logical_or                    logical_or.out                 self other
logical_xor                   logical_xor.out                self other
logit                         logit.out                      self eps%
masked_fill.Scalar            masked_fill.Scalar_out         self mask value
masked_scatter                masked_scatter.out             self mask source
max                           max.unary_out                  self
max.dim                       max.dim_max                    self dim keepdim
max_pool2d_with_indices       max_pool2d_with_indices.out    self kernel_size stride padding dilation ceil_mode
maximum                       maximum.out                    self other
mean                          mean.dtype_out                 self dtype
mean.dim                      mean.out                       self dim keepdim dtype
min                           min.unary_out                  self
min.dim                       min.dim_min                    self dim keepdim
minimum                       minimum.out                    self other
mm                            mm.out                         self mat2
mul.Scalar                    mul.Scalar_out                 self other
mul.Tensor                    mul.out                        self other
narrow_copy                   narrow_copy.out                self dim start length
native_group_norm             native_group_norm.out          input weight bias N C HxW group eps%
native_layer_norm             native_layer_norm.out          input normalized_shape weight bias eps%
ones                          ones.out                       size
permute                       permute_copy.out               self dims
permute_copy                  permute_copy.out               self dims
pixel_shuffle                 pixel_shuffle.out              self upscale_factor
pixel_unshuffle               pixel_unshuffle.out            self downscale_factor
pow.Scalar                    pow.Scalar_out                 self exponent
pow.Tensor_Scalar             pow.Tensor_Scalar_out          self exponent
pow.Tensor_Tensor             pow.Tensor_Tensor_out          self exponent
prod                          prod.out                       self dtype
prod.dim_int                  prod.int_out                   self dim keepdim dtype
reflection_pad1d              reflection_pad1d.out           self padding
reflection_pad2d              reflection_pad2d.out           self padding
reflection_pad3d              reflection_pad3d.out           self padding
repeat                        repeat.out                     self repeats
replication_pad1d             replication_pad1d.out          self padding
replication_pad2d             replication_pad2d.out          self padding
replication_pad3d             replication_pad3d.out          self padding
reshape                       view_copy.out                  self size=shape
roll                          roll.out                       self shifts dims
rsub.Scalar                   rsub.Scalar_out                self other alpha
scalar_tensor                 scalar_tensor.out              s
scatter.src                   scatter.src_out                self dim index src
scatter.value                 scatter.value_out              self dim index value
scatter_add                   scatter_add.out                self dim index src
select.int                    select_copy.int_out            self dim index
select_copy.int               select_copy.int_out            self dim index
select_scatter                select_scatter.out             self src dim index
slice.Tensor                  slice_copy.Tensor_out          self dim start end step
slice_copy.Tensor             slice_copy.Tensor_out          self dim start end step
slice_scatter                 slice_scatter.out              self src dim start end step
split.Tensor                  split_copy.Tensor_out          self split_size dim
split_copy.Tensor             split_copy.Tensor_out          self split_size dim
split_with_sizes              split_with_sizes_copy.out      self split_sizes dim
split_with_sizes_copy         split_with_sizes_copy.out      self split_sizes dim
squeeze                       view_copy.out                  self size=shape
squeeze.dim                   squeeze_copy.dim_out           self dim
squeeze.dims                  squeeze_copy.dims_out          self dim
squeeze_copy                  view_copy.out                  self size=shape
squeeze_copy.dim              squeeze_copy.dim_out           self dim
squeeze_copy.dims             squeeze_copy.dims_out          self dim
stack                         stack.out                      tensors dim
sub.Scalar                    sub.Scalar_out                 self other alpha
sub.Tensor                    sub.out                        self other alpha
sum.dim_IntList               sum.IntList_out                self dim keepdim dtype
t                             t_copy.out                     self
topk                          topk.values                    self k dim largest sorted
transpose.int                 transpose_copy.int_out         self dim0 dim1
transpose_copy.int            transpose_copy.int_out         self dim0 dim1
tril                          tril.out                       self diagonal
unbind.int                    unbind_copy.int_out            self dim
unbind_copy.int               unbind_copy.int_out            self dim
unfold                        unfold_copy.out                self dimension size step
unfold_copy                   unfold_copy.out                self dimension size step
unsqueeze                     unsqueeze_copy.out             self dim
unsqueeze_copy                unsqueeze_copy.out             self dim
upsample_bilinear2d.vec       upsample_bilinear2d.vec_out    input output_size align_corners scale_factors%
upsample_nearest2d.vec        upsample_nearest2d.vec_out     input output_size scale_factors%
var.correction                var.correction_out             self dim correction keepdim
var.dim                       var.out                        self dim unbiased keepdim
var_mean.correction           var_mean.correction_out        self dim correction keepdim
view                          view_copy.out                  self size=shape
view_copy                     view_copy.out                  self size=shape
where.self                    where.self_out                 condition self other
zeros                         zeros.out                      size
"""  # noqa: E501 - a row is a line

_QUANTIZED_ROWS = """
dequantize_per_channel dequantize_per_channel.out input scales zero_points axis quant_min quant_max dtype out_dtype=none
dequantize_per_tensor dequantize_per_tensor.out input scale% zero_point quant_min quant_max dtype out_dtype=none
quantize_per_channel quantize_per_channel.out input scales zero_points axis quant_min quant_max dtype
quantize_per_tensor quantize_per_tensor.out input scale% zero_point quant_min quant_max dtype
"""  # noqa: E501 - a row is a line


def _parameter(text: str) -> Parameter:
    name, _, default = text.partition("=")
    bare = name.rstrip("%?")
    form = {"%": Form.REAL, "?": Form.SOME_TENSORS}.get(name[-1], Form.PLAIN)
    if bare in _TYPES:
        form = Form.TYPE
    return Parameter(bare, form, Default(default) if default else None)


def _kernel(prefix: str, name: str, parameters: list[str]) -> Kernel:
    base, _, overload = name.partition(".")
    listed = tuple(_parameter(text) for text in parameters)
    return Kernel(prefix + base, overload, listed, base in _LISTS)


def _read(prefix: str, text: str) -> dict[str, Kernel]:
    lines = (line.split() for line in text.strip().splitlines())
    return {prefix + parts[0]: _kernel(prefix, parts[1], parts[2:]) for parts in lines}


KERNELS: dict[str, Kernel] = {
    **{ATEN + name: _kernel(ATEN, f"{name}.out", ["self"]) for name in _UNARY.split()},
    **{
        f"{ATEN}{name}.{kind}": _kernel(ATEN, f"{name}.{kind}_out", ["self", "other"])
        for name in _SCALAR_OR_TENSOR.split()
        for kind in ("Scalar", "Tensor")
    },
    **_read(ATEN, _ROWS),
    **_read(QUANTIZED, _QUANTIZED_ROWS),
}
"""Functional operator to the kernel that computes it."""
