"""Every operator by itself: Arm's reference model against PyTorch in float64."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import Tensor, nn
from torch.nn import functional

from mizzen.compiler.torch.call import Call
from mizzen.compiler.torch.exported import export
from mizzen.frontends.torch.fp_lowering import lower_float, read_float
from mizzen.passes import plain
from mizzen.reference import evaluate

from .accuracy import UNIT, Array
from .drawn import (
    Case,
    Draw,
    adaptive,
    attention,
    batch_norm,
    conv1d,
    conv2d,
    conv2d_same,
    conv3d,
    conv3d_same,
    conv_batch_norm,
    conv_transpose2d,
    copied,
    each,
    image,
    length,
    linear,
    norm_of,
    over,
    picked,
    pool,
    pool1d,
    product,
    put,
    recurrent,
    resized,
    rows,
    two,
)

SEEDS = 1
MANY_SEEDS = 60

CASES: dict[str, Draw] = {
    "conv2d": conv2d,
    "conv2d_same": conv2d_same,
    "conv3d": conv3d,
    "conv3d_same": conv3d_same,
    "conv1d": conv1d,
    "conv_transpose2d": conv_transpose2d,
    "conv_batch_norm": conv_batch_norm,
    "batch_norm": batch_norm,
    "linear": linear,
    "max_pool2d": pool(nn.MaxPool2d),
    "avg_pool2d": pool(nn.AvgPool2d),
    "pool1d": pool1d,
    "adaptive_pool": adaptive,
    "layer_norm": norm_of(lambda sizes: nn.LayerNorm(sizes[2:])),
    "group_norm": norm_of(lambda sizes: nn.GroupNorm(2, sizes[1])),
    "instance_norm": norm_of(lambda sizes: nn.InstanceNorm2d(sizes[1], affine=True)),
    "rms_norm": norm_of(lambda sizes: nn.RMSNorm(sizes[-1], eps=1e-6)),
    "attention": attention,
    "matmul": product,
    "lstm": recurrent(nn.LSTM),
    "gru": recurrent(nn.GRU),
    "rnn": recurrent(nn.RNN),
    "embedding": rows,
    "index_select": picked,
    "index_put": put,
    "index_copy": copied,
    "relu": each(torch.relu, 0),
    "relu6": each(functional.relu6, 0),
    "hardtanh": each(lambda x: functional.hardtanh(x, -0.5, 0.75), 0),
    "clamp": each(lambda x: x.clamp(min=-0.25), 0),
    "sigmoid": each(torch.sigmoid),
    "tanh": each(torch.tanh),
    "silu": each(functional.silu),
    "mish": each(functional.mish, 16),
    "gelu": each(functional.gelu),
    "gelu_tanh": each(lambda x: functional.gelu(x, approximate="tanh"), 16),
    "hardswish": each(functional.hardswish),
    "hardsigmoid": each(functional.hardsigmoid),
    "leaky_relu": each(lambda x: functional.leaky_relu(x, 0.1), 2),
    "elu": each(lambda x: functional.elu(x, 0.7)),
    "celu": each(lambda x: functional.celu(x, 0.7)),
    "selu": each(functional.selu),
    "softplus": each(lambda x: functional.softplus(x, 2.0, 3.0)),
    "log_sigmoid": each(functional.logsigmoid),
    "softsign": each(functional.softsign),
    "hardshrink": each(functional.hardshrink),
    "softshrink": each(functional.softshrink),
    "exp": each(torch.exp),
    "expm1": each(torch.expm1),
    "log": each(torch.log, 8, 0.01),
    "log2": each(torch.log2, 8, 0.01),
    "log1p": each(torch.log1p, 8, 0.0),
    "sqrt": each(torch.sqrt, 8, 0.0),
    "rsqrt": each(torch.rsqrt, 8, 0.01),
    "reciprocal": each(torch.reciprocal, 8, 0.1),
    "pow_2": each(lambda x: x**2),
    "pow_3": each(lambda x: x**3),
    "pow_-1": each(lambda x: x**-1, 8, 0.1),
    "pow_half": each(lambda x: x**0.5, 8, 0.0),
    "pow_1.7": each(lambda x: x**1.7, 16, 0.0),
    "abs": each(torch.abs, 0),
    "neg": each(torch.neg, 0),
    "sign": each(torch.sign, 0),
    "floor": each(torch.floor, 0),
    "ceil": each(torch.ceil, 0),
    "trunc": each(torch.trunc, 0),
    "round": each(lambda x: torch.round(x * 2.0), 0),
    "erf": each(torch.erf),
    "sin": each(torch.sin),
    "cos": each(torch.cos),
    "scalars": each(lambda x: (2.0 - (x * 3.0 + 1.0)) / 7.0),
    "to_int": each(lambda x: (x * 3.0).to(torch.int32), 0),
    "add": two(torch.add),
    "add_alpha": two(lambda x, y: torch.add(x, y, alpha=0.3)),
    "sub": two(torch.sub),
    "mul": two(torch.mul),
    "div": two(torch.div),
    "maximum": two(torch.maximum, 0),
    "minimum": two(torch.minimum, 0),
    "where": two(lambda x, y: torch.where(x > y, x, 0.5), 0),
    "compare": two(lambda x, y: (x >= y) & ~(x < 0.5) | (y != y), 0),
    "masked_fill": two(lambda x, y: x.masked_fill(y > 0, -1.5), 0),
    "mean": over(lambda x, axis: x.mean(axis)),
    "sum": over(lambda x, axis: x.sum(axis, keepdim=True)),
    "sum_all": over(lambda x, axis: x.sum(), 700),
    "amax": over(torch.amax, 0),
    "amin": over(torch.amin, 0),
    "max_dim": over(lambda x, axis: x.max(axis).values, 0),
    "argmax": over(torch.argmax, 0),
    "argmin": over(torch.argmin, 0),
    "softmax": over(torch.softmax),
    "log_softmax": over(torch.log_softmax),
    "logsumexp": over(torch.logsumexp),
    "var": over(lambda x, axis: x.var(axis, correction=0), 100),
    "cumsum": over(torch.cumsum),
    "norm": over(length),
    "normalize": over(lambda x, axis: x / (length(x, axis).unsqueeze(axis) + 1.0)),
    "flip": over(lambda x, axis: x.flip(axis), 0),
    "roll": over(lambda x, axis: x.roll(1, axis), 0),
    "cat": over(lambda x, axis: torch.cat([x, x * 2.0, x], axis), 0),
    "stack": over(lambda x, axis: torch.stack([x, x * 2.0], axis), 0),
    "chunk": over(lambda x, axis: x.chunk(2, axis)[0], 0),
    "unbind": over(lambda x, axis: x.unbind(axis)[-1], 0),
    "select": over(lambda x, axis: x.select(axis, -1), 0),
    "step": over(lambda x, axis: x.transpose(0, axis)[::2], 0),
    "unsqueeze": over(lambda x, axis: x.unsqueeze(axis).expand(*[-1] * (x.dim() + 1)), 0),
    "flatten": over(lambda x, axis: x.transpose(0, axis).flatten(), 0),
    "repeat": over(lambda x, axis: x.repeat(*[2] * x.dim()), 0),
    "permute": image(lambda y: y.permute(0, 2, 3, 1), 0),
    "pad": image(lambda y: functional.pad(y, (1, 0, -1, 2), value=0.5), 0),
    "reflect": image(lambda y: functional.pad(y, (1, 2, 2, 0), mode="reflect"), 0),
    "replicate": image(lambda y: functional.pad(y, (1, 2, 2, 0), mode="replicate"), 0),
    "circular": image(lambda y: functional.pad(y, (1, 2, 2, 0), mode="circular"), 0),
    "pixel_shuffle": image(lambda y: functional.pixel_shuffle(y, 2), 0),
    "pixel_unshuffle": image(lambda y: functional.pixel_unshuffle(y, 2), 0),
    "channel_shuffle": image(nn.ChannelShuffle(2), 0),
    "resize": resized,
    "nearest_scale": image(lambda y: functional.interpolate(y, scale_factor=2.5), 0),
    "bilinear_scale": image(lambda y: functional.interpolate(y, scale_factor=1.7, mode="bilinear")),
    "glu": image(lambda y: functional.glu(y, 1)),
}


def magnitude(case: Case, module: nn.Module, inputs: list[Tensor], exact: list[Array]) -> list[Any]:
    """Return the outputs of absolute values for linear operators, else the greatest output or 1."""
    if not case.linear:
        return [max(1.0, float(np.abs(row).max(initial=0))) for row in exact]
    with torch.no_grad():
        for each in module.parameters():
            each.abs_()
        return arrays(module(*(each.abs() for each in inputs)))


def arrays(found: Any) -> list[Array]:
    if isinstance(found, Tensor):
        return [found.numpy()]
    return [array for each in found for array in arrays(each)]


def check(name: str, seed: int, oracle: Any) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        case = CASES[name](Random(seed))
    graph = lower_float(read_float(export(case.module.eval(), Call(case.inputs), name), name))
    plain().run(graph)
    double = copy.deepcopy(case.module).double()
    wide = [each.double() if each.is_floating_point() else each for each in case.inputs]
    with torch.no_grad():
        exact = arrays(double(*wide))
    bounds = magnitude(case, double, wide, exact)
    given = [array.astype(value.dtype.numpy) for value, array in zip(
        graph.inputs, (each.numpy() for each in case.inputs), strict=True)]  # fmt: skip
    for compute in (oracle, evaluate):
        for row, wanted, bound in zip(compute(graph, given), exact, bounds, strict=True):
            assert row.shape == wanted.shape
            # Half a unit more: outputs are float32, and `wanted` is not.
            error = np.abs(row.astype(np.float64) - wanted)
            assert (error <= (case.terms + 0.5) * UNIT * np.maximum(bound, np.abs(wanted))).all()


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, seed: int, tosa_oracle: Any) -> None:
    check(name, seed, tosa_oracle)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_operator_over_many_shapes(name: str, tosa_oracle: Any) -> None:
    for seed in range(SEEDS, MANY_SEEDS):
        check(name, seed, tosa_oracle)
