"""Computations by the file that lowers them; each is of quantised inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

aten: Any = torch.ops.aten
untyped: Any = torch
Computation = Callable[[Tensor], Any]

UNARY = (
    "sigmoid tanh silu hardswish hardsigmoid mish gelu elu celu selu leaky_relu log_sigmoid "
    "softplus hardshrink softshrink exp exp2 expm1 square sin cos tan sinh cosh erf erfc atan "
    "asinh abs neg sign floor ceil round trunc arctan absolute negative fix special_expit"
)
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal acosh"
ACTIVATION: dict[str, Computation] = {
    **{name: lambda x, name=name: getattr(aten, name)(x) for name in UNARY.split()},
    **{name: lambda x, name=name: getattr(aten, name)(x.abs() + 1.0) for name in POSITIVE.split()},
    "logit": lambda x: torch.logit(torch.sigmoid(x), 0.01),
    "erfinv": lambda x: torch.erfinv(torch.tanh(x) * 0.9),
    "asin": lambda x: torch.asin(torch.tanh(x)),
    "pow": lambda x: x**3,
    "pow number": lambda x: 2.0**x,
    "threshold": lambda x: functional.threshold(x, 0.3, -0.25),
    "in place": lambda x: torch.sigmoid_(x * 2.0),
    "add number": lambda x: aten.add.Scalar(x, 0.5),
    "divide number": lambda x: aten.div.Scalar(x, 3.0),
    "subtract number": lambda x: aten.subtract.Scalar(x, 3.0),
    "rsub number": lambda x: aten.rsub.Scalar(x, 3.0),
    "remainder": lambda x: torch.remainder(x, 0.4),
    "fmod": lambda x: torch.fmod(x, 0.4),
    "round decimals": lambda x: torch.round(x, decimals=1),
    "floor divided by a number": lambda x: torch.div(x, 0.3, rounding_mode="floor"),
    "cut": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "floor_divide": lambda x: torch.floor_divide(x, 0.3),
    "frac": torch.frac,
    "floor divided": lambda x: aten.div.Scalar_mode(x, 0.3, rounding_mode="floor"),
}
COMPARISON: dict[str, Computation] = {
    f"{name}{kind}": lambda x, name=name, other=other: torch.where(
        getattr(torch, name)(x, x.flip(3) * 1.0 if other is None else other), x, 0.0
    )
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "less", "greater_equal", "not_equal")
    for kind, other in (("", None), (" number", 0.25))
}
CHOICE: dict[str, Computation] = {
    "where": lambda x: torch.where(x > 0.1, x, x * 0.5),
    "masked_fill": lambda x: x.masked_fill(x > 0.1, -1.0),
    "logical_and": lambda x: torch.where(torch.logical_and(x > 0, x < 1), x, 1.0),
    "logical_or": lambda x: torch.where((x > 1) | (x < 0), x, 1.0),
    "logical_xor": lambda x: torch.where((x > 0) ^ (x < 1), x, 1.0),
    "logical_not": lambda x: torch.where(~(x > 0), x, 1.0),
    "and a number": lambda x: torch.where(aten.bitwise_and.Scalar(x > 0, True), x, 1.0),
    "any": lambda x: torch.where((x > 1).any(1, keepdim=True), x, 0.0),
    "any dims": lambda x: torch.where(torch.any(x > 1, dim=(2, 3), keepdim=True), x, 0.0),
    "all": lambda x: torch.where((x > -1).all(1, keepdim=True), x, 0.0),
    "amax": lambda x: x.amax((2, 3)),
    "amin": lambda x: x.amin(1, keepdim=True),
    "max": lambda x: x.max().reshape(1, 1),
    "max dim": lambda x: x.max(1).values,
    "min dim": lambda x: x.min(3, keepdim=True)[0],
}
ELEMENTWISE: dict[str, Computation] = {
    "add": lambda x: x + torch.sigmoid(x),
    "add alpha": lambda x: torch.add(x, torch.sigmoid(x), alpha=0.3),
    "sub": lambda x: x - torch.sigmoid(x),
    "subtract": lambda x: torch.subtract(x, torch.sigmoid(x), alpha=2.0),
    "rsub": lambda x: aten.rsub.Tensor(x, torch.sigmoid(x)),
    "mul": lambda x: x * torch.sigmoid(x),
    "multiply": lambda x: torch.multiply(x, torch.sigmoid(x)),
    "multiply a number": lambda x: torch.multiply(x, 0.4),
    "div": lambda x: x / (torch.sigmoid(x) + 0.5),
    "divide": lambda x: torch.divide(x, torch.sigmoid(x) + 0.5),
    "true_divide": lambda x: torch.true_divide(1.0, torch.sigmoid(x) + 0.5),
    "maximum": lambda x: torch.maximum(x, torch.sigmoid(x)),
    "max other": lambda x: torch.max(x, torch.sigmoid(x)),
    "minimum": lambda x: torch.minimum(x, torch.sigmoid(x)),
    "relu": lambda x: torch.relu(x + 0.5),
    "relu6": lambda x: functional.relu6(x * 4.0),
    "hardtanh": lambda x: functional.hardtanh(x, -0.5, 0.75),
    "clamp": lambda x: x.clamp(min=-0.25),
    "clip": lambda x: torch.clip(x, -0.25, 0.5),
    "clip by tensors": lambda x: torch.clip(x, torch.sigmoid(x) - 0.5, torch.sigmoid(x)),
    "clamp_max": lambda x: x.clamp_max(0.5),
    "broadcast": lambda x: x + x.mean(1, keepdim=True),
    "addcdiv": lambda x: torch.addcdiv(x, x, torch.sigmoid(x) + 0.5, value=0.5),
    "tril": torch.tril,
    "triu": lambda x: torch.triu(x, 1),
    "numbers that are": lambda x: torch.nan_to_num(x * 0.5),
    "multiplied by truths": lambda x: x * (x > 0.1),
    "truths as numbers": lambda x: x + (x > 0.1).float(),
    "lerp": lambda x: torch.lerp(x, torch.sigmoid(x), 0.3),
}
MATMUL: dict[str, Computation] = {
    "matmul": lambda x: x @ torch.sigmoid(x),
    "bmm": lambda x: torch.bmm(x[0], torch.sigmoid(x)[0]),
    "mm": lambda x: torch.mm(x[0, 0], x[0, 1]),
    "mv": lambda x: torch.mv(x[0, 0], torch.sigmoid(x)[0, 1, 0]),
    "dot": lambda x: torch.dot(x.flatten(), torch.sigmoid(x).flatten()).reshape(1, 1),
    "baddbmm": lambda x: torch.baddbmm(x[0], x[0], torch.sigmoid(x)[0], beta=0.5, alpha=2.0),
    "addmm": lambda x: torch.addmm(x[0, 0], x[0, 1], x[0, 2]),
    "addmm of parts": lambda x: torch.addmm(x[0, 0], x[0, 1], x[0, 2], beta=0.5, alpha=2.0),
    "addmm of none": lambda x: torch.addmm(x[0, 0], x[0, 1], x[0, 2], beta=0),
    "linear with a computed weight": lambda x: functional.linear(x, x[0, 0], x[0, 1, 2]),
    "einsum": lambda x: torch.einsum("nchw,ncwk->nchk", x, torch.sigmoid(x)),
}
MOVEMENT: dict[str, Computation] = {
    "view": lambda x: x.view(1, -1),
    "view_as": lambda x: x.view_as(x.flatten(1)),
    "reshape_as": lambda x: x.reshape_as(x.flatten(2)),
    "unflatten": lambda x: aten.unflatten.int(x, 1, [2, 2]),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "transpose": lambda x: x.transpose(1, 3),
    "swapdims": lambda x: x.swapdims(1, 2),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "mT": lambda x: x.mT,
    "t": lambda x: x[0, 0].t(),
    "numpy_T": lambda x: aten.numpy_T(x[0]),
    "movedim": lambda x: x.movedim(1, 3),
    "movedim of two": lambda x: x.movedim((1, 2), (3, 1)),
    "slice": lambda x: x[:, 1:, ::2],
    "slice past the end": lambda x: x[:, :, 1::2],
    "select": lambda x: x.select(2, -1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "split": lambda x: aten.split.Tensor(x, 2, 1)[1],
    "split sizes": lambda x: aten.split.sizes(x, [1, 3], 1)[1],
    "chunk": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    "unbind": lambda x: x.unbind(2)[-1],
    "cat": lambda x: torch.cat([x, torch.sigmoid(x)], 1),
    "concatenate": lambda x: torch.concatenate([x, torch.sigmoid(x)], 2),
    "stack": lambda x: torch.stack([x, torch.sigmoid(x)], 1),
    "hstack": lambda x: torch.hstack([x, torch.sigmoid(x)]),
    "expand": lambda x: x.mean(1, keepdim=True).expand(-1, 3, -1, -1),
    "broadcast_to": lambda x: torch.broadcast_to(x.mean(1, keepdim=True), (1, 3, 6, 6)),
    "repeat": lambda x: x.repeat(1, 2, 1, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "repeat_interleave of all": lambda x: x.repeat_interleave(2),
    "index_select": lambda x: torch.index_select(x, 1, torch.tensor([3, 0, 1, 1])),
    "index": lambda x: x[:, [2, 0, -1]],
    "index of two dimensions": lambda x: x[:, [[0, 3]], [1, 5]],
    "gather": lambda x: torch.gather(x, 3, torch.tensor([[[[4, 0], [1, 1]]]])),
    "index_put": lambda x: torch.index_put(x[0], (torch.tensor([2, 0]),), x[0, 1:3]),
    "index_put of a number": lambda x: torch.index_put(
        x[0], (torch.tensor([1, 3]),), torch.tensor(0.5)
    ),
    "index_copy": lambda x: torch.index_copy(x, 2, torch.tensor([5, 1]), x[:, :, 2:4]),
    "unfold": lambda x: x.unfold(2, 3, 2),
    "diagonal": lambda x: x.diagonal(1, 2, 3),
    "as_strided": lambda x: torch.as_strided(x, (3, 4), (7, 2), 5),
    "flip": lambda x: x.flip(1, 3),
    "roll": lambda x: x.roll((1, -2), (1, 2)),
    "roll all": lambda x: x.roll(5),
    "pad": lambda x: functional.pad(x, (1, 0, -1, 2), value=0.5),
    "reflect": lambda x: functional.pad(x, (1, 2, 2, 0), mode="reflect"),
    "replicate": lambda x: functional.pad(x, (1, 2, 2, 0), mode="replicate"),
    "circular": lambda x: functional.pad(x, (1, 2, 2, 0), mode="circular"),
    "reflection_pad2d": lambda x: aten.reflection_pad2d(x, [1, 2, 2, 0]),
    "replication_pad2d": lambda x: aten.replication_pad2d(x, [1, 2, 2, 0]),
    "slice_scatter steps": lambda x: torch.slice_scatter(x, torch.sigmoid(x)[:, :, :3], 2, 0, 6, 2),
    "slice_scatter at the end": lambda x: torch.slice_scatter(
        x, torch.sigmoid(x)[:, :, :2], 2, 2, 6, 3
    ),
    "slice_scatter one in between": lambda x: torch.slice_scatter(
        x, torch.sigmoid(x)[:, :1], 1, 1, 3, 2
    ),
    "slice_scatter the last": lambda x: torch.slice_scatter(
        x, torch.sigmoid(x)[:, :, :2], 2, 1, 6, 4
    ),
    "slice_scatter": lambda x: torch.slice_scatter(x, torch.sigmoid(x)[:, :, :3], 2, 1, 4),
    "select_scatter": lambda x: torch.select_scatter(x, torch.sigmoid(x)[:, 1], 1, 3),
    "pixel_shuffle": lambda x: functional.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: functional.pixel_unshuffle(x, 2),
    "channel_shuffle": nn.ChannelShuffle(2),
    "clone": lambda x: (x * 2.0).contiguous().clone(),
}
POOLING: dict[str, Computation] = {
    "max_pool2d": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "max_pool2d ceil": lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True),
    "max_pool1d": lambda x: functional.max_pool1d(x.flatten(2), 3, 2),
    "max_pool2d_with_indices": lambda x: aten.max_pool2d_with_indices(x, [2, 2])[0],
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
    "avg_pool2d padded": lambda x: functional.avg_pool2d(x, 3, 2, 1),
    "avg_pool2d without padding": lambda x: functional.avg_pool2d(
        x, 3, 2, 1, count_include_pad=False
    ),
    "avg_pool2d of one image": lambda x: functional.avg_pool2d(x[0], 2),
    "avg_pool2d by a divisor": lambda x: functional.avg_pool2d(x * 1.0, 2, divisor_override=3),
    "avg_pool2d to the edge by a divisor": lambda x: functional.avg_pool2d(
        x * 1.0, 3, 2, 1, ceil_mode=True, divisor_override=2
    ),
    "avg_pool2d padded by a divisor": lambda x: functional.avg_pool2d(
        x * 1.0, 3, 2, 1, divisor_override=5
    ),
    "adaptive_avg_pool2d of one image": lambda x: functional.adaptive_avg_pool2d(x[0], 4),
    "avg_pool1d": lambda x: functional.avg_pool1d(x.flatten(2), 4),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, (2, 3)),
    "adaptive_avg_pool2d uneven": lambda x: functional.adaptive_avg_pool2d(x, 4),
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(x, 3),
    "adaptive_max_pool2d uneven": lambda x: functional.adaptive_max_pool2d(x, 4),
}
REDUCTION: dict[str, Computation] = {
    "sum": lambda x: x.sum((1, 2)),
    "sum of all": lambda x: x.sum().reshape(1, 1),
    "mean": lambda x: x.mean(1, keepdim=True),
    "mean of planes": lambda x: x.mean((2, 3)),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "cumsum last": lambda x: torch.cumsum(x, -1),
    "var": lambda x: x.var(1, correction=0),
    "std": lambda x: x.std(1),
    "softmax": lambda x: torch.softmax(x, 1),
    "log_softmax": lambda x: torch.log_softmax(x, 1),
    "logsumexp": lambda x: torch.logsumexp(x, (1,)),
    "vector_norm": lambda x: untyped.linalg.vector_norm(x, dim=1),
    "norm": lambda x: untyped.norm(x, dim=1),
}
RESIZE: dict[str, Computation] = {
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "nearest of a row": lambda x: functional.interpolate(x.flatten(2), scale_factor=2.0),
    "nearest by a fraction": lambda x: functional.interpolate(x, scale_factor=1.6),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear corners": lambda x: functional.interpolate(
        x, size=11, mode="bilinear", align_corners=True
    ),
    "bilinear by a fraction": lambda x: functional.interpolate(
        x, scale_factor=1.7, mode="bilinear"
    ),
    "linear": lambda x: functional.interpolate(x.flatten(2), scale_factor=2.0, mode="linear"),
}
