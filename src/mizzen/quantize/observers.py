"""Observers: what calibration has seen of one tensor, and the scale and zero point that follow.

They are torchao's own, with three promises added. An observer that never saw data refuses to give
a scale (torchao gives 1.0). Values that are no finite numbers are refused where they occur, with
the place in the model; of an operator that gives others too, infinities saturate. And the search
for the best range runs once per tensor, not once for every tensor that derives its scale from this
one, and over arrays: it finds what torchao's finds, in a fraction of the time.

A part of a program that stands for several operators has observers of its own, and converts
itself: torchao's `convert_pt2e` asks every observer in the program for its conversion, and a
`Composite` is one to it. Its result is always a tuple, even of one tensor: torchao looks through an
observer for the value that it observes, and would take a composite's operand for its result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from torchao.quantization.pt2e.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
)

from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity, fail, warn
from mizzen.quantize.enough import Calls
from mizzen.quantize.state import READ_STATE

Parameters = tuple[torch.Tensor, torch.Tensor]
"""Scale and zero point, each of shape [1], or [channels] where each channel has its own."""


Adjust = Callable[[Parameters, Any], Parameters]
"""Returns a scale near to one that an observer has found, not smaller, and the zero point."""


def never_calibrated(origin: Origin | None) -> MizzenError:
    """Make the error for a tensor whose observer never ran."""
    return fail(
        "E870",
        "every quantized tensor must have been seen in calibration, and this one never was",
        origin=origin,
        help="call the prepared model on representative inputs before convert_pt2e",
    )


def not_finite(origin: Origin | None, tensor: torch.Tensor) -> MizzenError:
    """Make the error for values without a range."""
    kinds = {"NaN": torch.isnan(tensor).sum(), "infinite": torch.isinf(tensor).sum()}
    counted = ", ".join(f"{int(count)} {kind}" for kind, count in kinds.items() if count)
    return fail(
        "E871",
        f"calibration must see finite values only, and {counted} of {tensor.numel()} came",
        origin=origin,
        help="check the calibration inputs, and masks that add minus infinity; calibrate with "
        "inputs like those in use, or clamp before what is infinite there",
    )


def check_finite(tensor: torch.Tensor, origin: Origin | None) -> None:
    """Raise E871 unless all of `tensor` is finite."""
    if not _is_finite(tensor):
        raise not_finite(origin, tensor)


def _is_finite(tensor: torch.Tensor) -> bool:
    if not tensor.numel():
        return True
    low, high = torch.aminmax(tensor.detach())
    # A NaN anywhere makes both NaN; an infinity makes the difference infinite or NaN.
    return bool(torch.isfinite(high - low))


EXTREME = 2.0**15
"""What stands for infinity where an operator gave nothing else: 16 bits have it in whole steps."""


def saturated(tensor: torch.Tensor, observer: Any) -> torch.Tensor:
    """Return a tensor with infinities that an operator gave cut to the ends of its other numbers.

    So the quantised program has them; where there are no others, `EXTREME` stands for them. Warns
    at an observer's first (W871); raises E871 for infinities that come from outside, and for what
    is no number.
    """
    if _is_finite(tensor):
        return tensor
    known = tensor.detach()[torch.isfinite(tensor)]
    if not observer.is_computed or not _is_finite(known) or bool(torch.isnan(tensor).any()):
        raise not_finite(observer.origin, tensor)
    if not observer.has_saturated:
        observer.has_saturated = True
        warn([_saturates(observer.origin, tensor.numel() - known.numel(), tensor.numel())], 0)
    if not known.numel():
        return torch.clamp(tensor, -EXTREME, EXTREME)
    return torch.clamp(tensor, known.min(), known.max())


def _saturates(origin: Origin | None, count: int, of: int) -> Diagnostic:
    range_ = "the range is that of the other numbers"
    if count == of:
        range_ = f"no other number came, and {EXTREME:.0f} stands for infinity"
    return Diagnostic(
        "W871",
        f"{count} infinite of {of} came in calibration, which saturate: {range_}",
        Severity.WARNING,
        origin,
        help="calibrate with inputs like those in use, or clamp before it",
    )


class _Observing:
    """What observers of activations know of their tensor."""

    origin: Origin | None = None
    adjust: Adjust | None = None
    """What makes its scale one that its readers need."""
    is_computed = True
    """Whether an operator gives it, and not the network's caller."""
    has_saturated = False
    is_judged = True
    """Whether too little data shows in what it sees: of masks zeros alone are much."""

    @cached_property
    def calls(self) -> Calls:
        """What calibration has shown it."""
        return Calls()

    def seen(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count a tensor, and return it with infinities cut."""
        values = saturated(tensor, self)
        if self.is_judged:
            self.calls.add(values)
        return values

    def say_what_is_missing(self) -> None:
        """Warn, once, where calibration was not enough."""
        warn(list(self.calls.findings(self.origin, is_computed=self.is_computed)), 0)


def version_of(tensor: torch.Tensor) -> tuple[int, int]:
    """Return a version that changes with a constant; inference tensors have none."""
    if tensor.is_inference():
        return tensor.data_ptr(), 0
    return tensor.data_ptr(), tensor._version  # pyright: ignore[reportPrivateUsage] - no other


DIVIDED_BITS = {8: 8, 16: 1}
"""Bits of a divided tensor's scale, by those of its integers: float32 holds all of their products.

They cost 1/128 of the range of 8-bit integers at most, and half the range of 16-bit ones.
"""


def of_few_bits(parameters: Parameters, observer: Any) -> Parameters:
    """Return a scale of few significant bits that is not less, and the zero point."""
    scale, zero_point = parameters
    bits = DIVIDED_BITS[torch.iinfo(observer.dtype).bits]
    fraction, exponent = torch.frexp(scale)
    whole = torch.ceil(torch.ldexp(fraction, torch.tensor(bits)))
    return torch.ldexp(whole, exponent - bits), zero_point


def with_whole_one(parameters: Parameters, observer: Any) -> Parameters:
    """Return a scale of which 1 is a multiple, so that no number up to 1 is rounded beyond it."""
    scale, zero_point = parameters
    steps = torch.floor(1.0 / scale * (1.0 + torch.finfo(torch.float32).eps))
    return torch.where(steps >= 1.0, 1.0 / steps.clamp(min=1.0), scale), zero_point


def adjusted(parameters: Parameters, observer: Any) -> Parameters:
    """Return scale and zero point as the readers of an observer's tensor need them."""
    return parameters if observer.adjust is None else observer.adjust(parameters, observer)


SEARCH_STEP = 1e-5
"""The share of the values that each step of torchao's search may cut off, at one end."""
SEARCH_STEPS = 100_002
"""Steps after which nothing is left, with those that rounding may add."""


@cache
def _shares() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the share of values below the range after each step at its low end, and its high."""
    steps = np.full(SEARCH_STEPS, SEARCH_STEP)
    return np.add.accumulate(np.append(0.0, steps)), np.subtract.accumulate(np.append(1.0, steps))


Rising = npt.NDArray[np.float32]


def _place(numbers: Rising, number: np.float32) -> int:
    """Return the index of the first of some numbers that is not less."""
    return int(numbers.searchsorted(number))


def _behind(numbers: Rising, number: np.float32) -> int:
    """Return the index of the first of some numbers that is greater."""
    return int(numbers.searchsorted(number, "right"))


class ActivationObserver(_Observing, HistogramObserver):
    """A histogram of a tensor's values, from which the range with the least error is chosen."""

    _parameters_found: Parameters | None = None

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        """Add the values of `x_orig`, of any shape, and return them."""
        self._parameters_found = None
        base: Any = super()
        return base.forward(self.seen(x_orig))

    def calculate_qparams(self) -> Parameters:
        """Return scale and zero point; raise E870 where there was no data."""
        if self.min_val > self.max_val:
            raise never_calibrated(self.origin)
        if self._parameters_found is None:
            self.say_what_is_missing()
            parameters = super().calculate_qparams()
            self._parameters_found = adjusted(parameters, self)
        return self._parameters_found

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """Return least and greatest value of the range: torchao's search, which it calls.

        Torchao's own asks a tensor for a number in each of up to 100,000 steps, most of which cut
        off nothing where there are few values.
        """
        start, end = self._kept_bins()
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * start, self.min_val + width * (end + 1)

    def _kept_bins(self) -> tuple[int, int]:
        """Cut bins off, at the end that gives up more of them, until the error grows.

        Shares are added up in float64; the counts that they come to are float32, as all counts.
        """
        counts = np.asarray(torch.cumsum(self.histogram, 0).cpu(), np.float32)
        total = float(torch.sum(self.histogram))
        low, high = _shares()
        below, above = (low * total).astype(np.float32), -(high * total).astype(np.float32)
        start, end, lows, highs, least = 0, len(counts) - 1, 0, 0, float("inf")
        while start < end and low[lows] < high[highs]:
            left = max(start, min(_place(counts, below[lows + 1]), end))
            right = _behind(counts, -above[highs + 1]) - 1
            right = min(end, max(right, start))
            if left == start and right == end:
                highs = _behind(above, -counts[end]) - 1
                continue
            if left - start > end - right:
                lows, kept = lows + 1, (left, end)
            else:
                highs, kept = highs + 1, (start, right)
            error = self._compute_quantization_error(*kept)
            if error > least:
                break
            least, (start, end) = error, kept
        return start, end


class RangeObserver(_Observing, MinMaxObserver):
    """The least and the greatest value: exact for constants, and for integers of 16 bits."""

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        """Widen the range to the values of `x_orig`, and return them."""
        base: Any = super()
        return base.forward(self.seen(x_orig))

    def calculate_qparams(self) -> Parameters:
        """Return scale and zero point; raise E870 where there was no data."""
        if self.min_val.numel() == 0 or bool((self.min_val > self.max_val).any()):
            raise never_calibrated(self.origin)
        self.say_what_is_missing()
        parameters = super().calculate_qparams()
        return adjusted(parameters, self)


class _ReadOnce:
    """What observers of constants have in common: they read once, calibration changes nothing."""

    origin: Origin | None = None
    adjust: Adjust | None = None
    _seen: tuple[int, int] | None = None

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        """Take what the weights `x_orig` span at the first call."""
        if self._seen != (version := version_of(x_orig)):
            check_finite(x_orig, self.origin)
            self._seen = version
            base: Any = super()
            base.forward(x_orig)
        return x_orig

    def calculate_qparams(self) -> Parameters:
        """Return scale and zero point, one for each range; raise E870 where there was no data."""
        if self._seen is None:
            raise never_calibrated(self.origin)
        base: Any = super()
        parameters: Parameters = base.calculate_qparams()
        return adjusted(parameters, self)


class WeightObserver(_ReadOnce, MinMaxObserver):
    """One range for a constant."""


class WeightPerChannelObserver(_ReadOnce, PerChannelMinMaxObserver):
    """A range for each channel of a constant."""


class ActivationFakeQuantize(_Observing, FusedMovingAvgObsFakeQuantize):
    """Quantisation simulated in training, with a range that follows the values."""

    def forward(self, X: torch.Tensor) -> torch.Tensor:  # noqa: N803 - torchao's name
        """Follow the range of `X` and return it rounded to the integers of that range."""
        values = saturated(X, self)
        base: Any = super()
        if self.is_per_channel and self.ch_axis != 0:
            unfused: Any = FakeQuantize
            rounded = unfused.forward(self, values)  # PyTorch's fused kernel has axis 0 only
        else:
            rounded = base.forward(values)
        if rounded.requires_grad:
            rounded.register_hook(_where_finite)
        return rounded

    def calculate_qparams(self) -> Parameters:
        """Return scale and zero point; raise E870 where there was no data."""
        low = self.activation_post_process.min_val
        if low.numel() == 0 or not bool(torch.isfinite(low).all()):
            raise never_calibrated(self.origin)
        parameters = super().calculate_qparams()
        return adjusted(parameters, self)


def _where_finite(gradient: Tensor) -> Tensor:
    """Return a gradient with 0 where there is none: a number may be rounded onto a pole, which
    saturates, such as the variance of a normalization onto 0.
    """
    return torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)


class FakeQuantizePerChannel(ActivationFakeQuantize):
    """The same with a range for each channel.

    torchao hands on the axis of the channels only to classes with "PerChannel" in their name.
    """


def with_arguments(constructor: Any, **arguments: Any) -> Any:
    """Return an observer's constructor with some of its arguments, as torchao asks for it."""
    return constructor.with_args(**arguments)


def fake_quantize(kind: type[ActivationFakeQuantize], **arguments: Any) -> Any:
    """Return the constructor of a fake-quantiser with one range, or one for each channel."""
    observer = MovingAverageMinMaxObserver
    if issubclass(kind, FakeQuantizePerChannel):
        observer = MovingAveragePerChannelMinMaxObserver
    return with_arguments(kind, observer=observer, **arguments)


class Composite(ObserverBase):
    """A part of a prepared program with observers of its own."""

    origin: Origin | None = None

    def __init__(self) -> None:
        base: Any = super()
        base.__init__(torch.float32)
        self.observers = torch.nn.ModuleDict()

    def observe(self, name: str, observer: torch.nn.Module) -> None:
        """Let `observer` see the values of that name."""
        self.observers[name] = observer

    def forward(self, *operands: Any) -> tuple[torch.Tensor, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - its operands, not x
        """Compute in floating point."""
        named: Any = self  # each composite has a `run` whose operands have names
        return named.run(*operands)

    def wire(self, node: Node, observers: dict[Any, Any]) -> None:
        """Take over the observers of values that are outside too, from torchao's map of them."""

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Refuse: a composite has no scale, or several."""
        raise never_calibrated(self.origin)

    def convert(self, model: GraphModule, node: Node) -> None:
        """Replace `node`, which calls this module. Called by torchao."""
        raise NotImplementedError


def composite_of(module: GraphModule, node: Node) -> Composite | None:
    """Return the composite that a node calls, None for other nodes."""
    if node.op != "call_module":
        return None
    submodule = module.get_submodule(str(node.target))
    return submodule if isinstance(submodule, Composite) else None


def replace_composite(model: GraphModule, node: Node, result: Node) -> None:
    """Let `result`, one tensor, take the place of a composite's tuple of one."""
    result.meta |= {key: copy.copy(value) for key, value in node.meta.items()}
    result.meta["val"] = node.meta["val"][0]
    for item in list(node.users):
        item.replace_all_uses_with(result)
        model.graph.erase_node(item)
    model.graph.erase_node(node)


class StateReader(Composite):
    """Reads a buffer that the program writes. It ships as ``mizzen::read_state(state)``."""

    initial: Tensor

    def __init__(self, initial: Tensor) -> None:
        super().__init__()
        self.register_buffer("initial", initial.detach().clone())

    def run(self, state: Tensor) -> tuple[Tensor]:
        """Return the state as it is now."""
        return (state.clone(),)

    def convert(self, model: GraphModule, node: Node) -> None:
        """Put the first state back, and read it with the operator from now on."""
        (buffer,) = node.all_input_nodes
        state: Any = model
        for name in str(buffer.target).split("."):
            state = getattr(state, name)
        with torch.no_grad():
            state.copy_(self.initial)
        with model.graph.inserting_before(node):
            result = model.graph.call_function(READ_STATE, (buffer,))
        replace_composite(model, node, result)
