"""Write the reference's page of functions of 16 bits: how far each is off PyTorch's, measured.

`make conformance` runs this. Each function is quantised, compiled for both accelerators and run on
random inputs; the page holds the worst of them. A test runs a sample of its rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.quantize import EthosUQuantizer, get_symmetric_a16w8_quantization_config
from mizzen.torch import compile_converted

PAGE = Path(__file__).with_name("reference") / "wide-functions.md"
ACCELERATORS = ("ethos-u55-128", "ethos-u85-256")
SHAPE = (1, 16, 64)
CALIBRATIONS, CALLS = 24, 8

INTRODUCTION = """\
# Functions of 16 bits

This table shows the error of functions in a network that is quantised with
`get_symmetric_a16w8_quantization_config`, in steps of the output's scale. It compares outputs with
the quantised PyTorch program, and with the exact function of the quantised inputs, in float64 and
rounded.

Each row is the worst of {calls} random inputs of 1,024 numbers. The second column has their range,
or their standard deviation. Functions with a sum have rows of 64. `make conformance` measures this;
[another page](../explanation/pytorch.md#functions-of-16-bits) explains the method.

Recurrent layers are compared with PyTorch's program only, since the exact function has other
weights than one of 8 bits. Cycles are estimates. For so few numbers they are mostly the
loading of tables.

| Function | Inputs | Accelerator | Off PyTorch | Off the exact function | Cycles |
|---|---|---|--:|--:|--:|
"""

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Random numbers from `low` to `high`, or normal ones of a deviation where there is no low."""

    high: float
    low: float | None = None
    varied: bool = False
    """Whether each row has a spread and an offset of its own, up to `high` times as large."""

    def __str__(self) -> str:
        if self.varied:
            return f"rows of 1/{self.high:g} to {self.high:g}"
        return f"± {self.high:g}" if self.low is None else f"{self.low:g} to {self.high:g}"

    def draw(self, generator: torch.Generator, shape: Sequence[int]) -> Tensor:
        """Draw an input."""
        if self.varied:
            part = torch.rand((*shape[:-1], 1), generator=generator) * 2 - 1
            return self.high**part * (torch.randn(shape, generator=generator) + 1)
        if self.low is None:
            return self.high * torch.randn(shape, generator=generator)
        return self.low + (self.high - self.low) * torch.rand(shape, generator=generator)


def between(*ends: tuple[float, float]) -> tuple[Inputs, ...]:
    """Return inputs of several ranges."""
    return tuple(Inputs(high, low) for low, high in ends)


SIGNED = between((-0.1, 0.1), (-4, 4), (-30, 30), (-2, 10))
POSITIVE = between((0.002, 0.1), (0.05, 4), (0.3, 30), (2, 10), (0.001, 30))
SCORES = tuple(map(Inputs, (0.1, 4, 30)))
ROWS = (*SCORES, Inputs(10, varied=True))


class Computes(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Compute it."""
        return self.function(x)


class Recurrent(nn.Module):
    """The sequence that a recurrent layer gives."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = kind(SHAPE[-1], 16, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer."""
        return self.layer(x)[0]


def softmax(x: Tensor) -> Tensor:
    """Along rows."""
    return functional.softmax(x, -1)


def log_softmax(x: Tensor) -> Tensor:
    """Along rows."""
    return functional.log_softmax(x, -1)


def logsumexp(x: Tensor) -> Tensor:
    """Along rows."""
    return torch.logsumexp(x, -1)


def power(exponent: float) -> Function:
    """Return a power."""
    return lambda x: x**exponent


FUNCTIONS: dict[str, tuple[Function | nn.Module, tuple[Inputs, ...]]] = {
    "softmax": (softmax, SCORES),
    "log_softmax": (log_softmax, SCORES),
    "logsumexp": (logsumexp, SCORES),
    "layer_norm": (nn.LayerNorm(SHAPE[-1]), ROWS),
    "rms_norm": (nn.RMSNorm(SHAPE[-1]), ROWS),
    "group_norm": (nn.GroupNorm(4, SHAPE[1]), ROWS),
    "instance_norm": (nn.InstanceNorm1d(SHAPE[1]), ROWS),
    "lstm": (Recurrent(nn.LSTM), SCORES[1:2]),
    "gru": (Recurrent(nn.GRU), SCORES[1:2]),
    "rsqrt": (torch.rsqrt, POSITIVE),
    "reciprocal": (torch.reciprocal, POSITIVE),
    "sqrt": (torch.sqrt, POSITIVE),
    "log": (torch.log, POSITIVE),
    "log1p": (torch.log1p, POSITIVE),
    "pow(-1.5)": (power(-1.5), POSITIVE),
    "pow(3)": (power(3), SIGNED),
    "square": (torch.square, SIGNED),
    "exp": (torch.exp, between((-0.1, 0.1), (-4, 4), (-8, 8), (-30, 0))),
    "gelu": (functional.gelu, SIGNED),
    "silu": (functional.silu, SIGNED),
    "mish": (functional.mish, SIGNED),
    "softplus": (functional.softplus, SIGNED),
    "elu": (functional.elu, SIGNED),
    "hardswish": (functional.hardswish, SIGNED),
    "hardsigmoid": (functional.hardsigmoid, SIGNED),
    "tanh": (torch.tanh, SIGNED),
    "sigmoid": (torch.sigmoid, SIGNED),
    "erf": (torch.erf, SIGNED),
    "sin": (torch.sin, SIGNED),
    "cos": (torch.cos, SIGNED),
    "tan": (torch.tan, between((-1.4, 1.4))),
    "atan": (torch.atan, SIGNED),
    "asin": (torch.asin, between((-0.98, 0.98))),
    "sign": (torch.sign, SIGNED),
    "hardshrink": (functional.hardshrink, SIGNED),
}


@dataclass(frozen=True, slots=True)
class Quantised:
    """A quantised program, and inputs for it."""

    exported: Any
    calls: tuple[Tensor, ...]

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of its input and of its output."""
        nodes = list(self.exported.graph_module.graph.nodes)
        *_, given = [row for row in nodes if row.op == "placeholder"]  # behind all parameters
        first = next(iter(given.users))
        return float(first.args[1]), float(nodes[-1].args[0][0].args[1])


def quantised(module: nn.Module, inputs: Inputs) -> Quantised:
    """Quantise a module, calibrated by inputs like those that it is then run on."""
    generator = torch.Generator().manual_seed(7)
    drawn = tuple(inputs.draw(generator, SHAPE) for _ in range(CALIBRATIONS))
    exported = torch.export.export(module.eval(), drawn[:1])
    quantizer = EthosUQuantizer(ACCELERATORS[-1])
    quantizer.set_global(get_symmetric_a16w8_quantization_config())
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for each in drawn:
            prepared(each)
    return Quantised(torch.export.export(convert_pt2e(prepared), drawn[:1]), drawn[:CALLS])


def rows(name: str) -> Iterator[str]:
    """Return the rows of a function."""
    function, ranges = FUNCTIONS[name]
    module = function if isinstance(function, nn.Module) else Computes(function)
    exact = None if isinstance(module, Recurrent) else copy.deepcopy(module).double()
    for inputs in ranges:
        found = quantised(module, inputs)
        for accelerator in ACCELERATORS:
            off, from_exact, cycles = measured(found, exact, accelerator)
            yield f"| `{name}` | {inputs} | {accelerator} | {off} | {from_exact} | {cycles:,} |\n"


def measured(found: Quantised, exact: nn.Module | None, accelerator: str) -> tuple[int, str, int]:
    """Return the most steps off PyTorch and off the exact function, and the cycles."""
    artifact = compile_converted(found.exported, accelerator)
    report, program = artifact.report, found.exported.module(check_guards=False)
    assert report is not None
    if report.on_cpu:
        raise ValueError(f"{report.on_cpu[0].kind} is on the CPU")
    (step_in, step_out), off, from_exact = found.scales, 0, 0
    for call in found.calls:
        with torch.no_grad():
            expected = program(call).double()
        given = torch.as_tensor(artifact.run(call.numpy())).double()
        off = max(off, _steps(given, expected, step_out))
        if exact is None:
            continue
        scaled = torch.round(call * torch.tensor(1 / step_in)).clamp(-32767, 32767)
        with torch.no_grad():
            ideal = torch.round(exact(scaled.double() * step_in) / step_out).clamp(-32767, 32767)
        from_exact = max(from_exact, _steps(given, ideal * step_out, step_out))
    return off, "" if exact is None else str(from_exact), report.cycles


def _steps(one: Tensor, other: Tensor, step: float) -> int:
    return int(torch.round((one - other).abs().max() / step))


def page() -> str:
    """Return the whole page; this runs every function."""
    parts = [row for name in FUNCTIONS for row in rows(name)]
    return INTRODUCTION.format(calls=CALLS) + "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
