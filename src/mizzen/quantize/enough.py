"""Say where calibration data is not enough: one sample, one number, or numbers that are cut off.

Quantisation succeeds with any data, and so does everything after it; only the numbers are bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from mizzen.diagnostics import Diagnostic, Origin, Severity
from mizzen.quantize.nodes import HIDDEN, KNOWN_RANGE, origin_of


@dataclass(frozen=True, slots=True)
class Limit:
    """From when on calibration data is not enough.

    code     of the warning
    at_least, at_most  what must hold of the number that is counted
    help     what to do
    """

    code: str
    at_least: float
    at_most: float
    help: str


SAMPLES = Limit("W320", 2, float("inf"), "calibrate with some dozens of real inputs")
"""Of one sample nothing says how far others go: its range is one draw of the least and greatest."""

NUMBERS = Limit(
    "W321", 2, float("inf"),
    "calibrate with real inputs, under which this tensor changes: any other number saturates",
)  # fmt: skip
"""One number has no range: what follows is a scale of the smallest step there is."""

SATURATED = Limit(
    "W322", 0, 1e-3, "quantise it with an observer of the whole range, or with 16 bits"
)  # fmt: skip
"""A share. The search for the range with the least squared error cuts off at most 0.005 % of
numbers that are distributed normally, exponentially or with heavy tails, measured with 8 bits; 20
times as many are cut off by something else, a range that lags behind or was set by hand."""

FEW = 10
"""Numbers that may saturate whatever share they are: ends of a small tensor are a few of few."""

CALLS = 4
"""Calls of calibration that are inferred again to count what saturates."""


def too_few(origin: Origin | None) -> Diagnostic:
    """Say that one sample came."""
    return Diagnostic(
        SAMPLES.code,
        "calibration must see several inputs, and saw one: the ranges are those of this one",
        Severity.WARNING,
        origin,
        help=SAMPLES.help,
    )


def only_one_number(origin: Origin | None, number: float) -> Diagnostic:
    """Say that a tensor was always the same number."""
    return Diagnostic(
        NUMBERS.code,
        f"calibration must see different numbers, and every one that came was {number:g}",
        Severity.WARNING,
        origin,
        help=NUMBERS.help,
    )


def cut_off(origin: Origin | None, share: float, low: float, high: float) -> Diagnostic:
    """Say that much of a tensor lies beyond its range."""
    return Diagnostic(
        SATURATED.code,
        f"at most {SATURATED.at_most:.1%} of the numbers of calibration may lie beyond the range "
        f"that was found, {low:.4g} to {high:.4g}, and {share:.1%} do",
        Severity.WARNING,
        origin,
        help=SATURATED.help,
    )


class Calls:
    """Counts what an observer saw, and says once if that is not enough."""

    def __init__(self) -> None:
        self.samples = 0
        self.elements = 0
        self.low, self.high = float("inf"), float("-inf")
        self.is_told = False

    def add(self, tensor: torch.Tensor) -> None:
        """Count a tensor: its first axis is that of samples where it is longer than one."""
        if not tensor.numel():
            return
        low, high = torch.aminmax(tensor.detach())
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
        self.samples += tensor.shape[0] if tensor.dim() > 1 else 1
        self.elements += tensor.numel()

    def findings(self, origin: Origin | None, *, is_computed: bool) -> Iterator[Diagnostic]:
        """Return the warnings of what was not enough, the first time that this is asked for."""
        if self.is_told or not self.elements:
            return
        self.is_told = True
        if self.samples < SAMPLES.at_least and not is_computed:
            yield too_few(origin)
        if self.low == self.high and self.elements >= NUMBERS.at_least:
            yield only_one_number(origin, self.low)


def findings_of(prepared: torch.nn.Module) -> Iterator[Diagnostic]:
    """Return warnings of what the observers did not see enough of, each said once.

    Where an input was always one number, what is computed of it is not named.
    """
    observers: list[Any] = [module for module in prepared.modules() if hasattr(module, "calls")]
    said = [
        (bool(observer.is_computed), finding)
        for observer in observers
        for finding in observer.calls.findings(observer.origin, is_computed=observer.is_computed)
    ]
    given = [finding for is_computed, finding in said if not is_computed]
    constant = any(finding.code == NUMBERS.code for finding in given)
    yield from given
    yield from (finding for is_computed, finding in said if is_computed and not constant)


def saturation(
    converted: torch.fx.GraphModule, calls: Iterable[Sequence[Any]]
) -> Iterator[Diagnostic]:
    """Say what of a converted model's tensors saturates in calls of its calibration: W322."""
    counting = _Counting(converted)
    with torch.no_grad():
        for arguments in calls:
            counting.run(*arguments)
    for node, (beyond, count) in counting.counts.items():
        share = beyond / max(1, count)
        if beyond > FEW and share > SATURATED.at_most:
            low, high = _range_of(node)
            yield cut_off(origin_of(node.all_input_nodes[0]), share, low, high)


class _Counting(fx.Interpreter):
    """Infers, and counts by roundings the numbers that are more than half a step out of range.

    A range that is known beforehand, such as that of what an exponential is taken of, cuts off what
    it is meant to.

    State goes on from call to call in tensors of its own: the model keeps the state that it starts
    from.
    """

    def __init__(self, module: fx.GraphModule) -> None:
        base: Any = super()
        base.__init__(module)
        self.counts: dict[fx.Node, tuple[int, int]] = {}
        self._held: dict[str, torch.Tensor] = {}

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return a weight or a state, a copy that may be changed in place."""
        if target in self._held:
            return self._held[target]
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, torch.Tensor):
            value = self._held[target] = value.clone()
        return value

    def run_node(self, n: fx.Node) -> Any:
        """Count, and compute."""
        is_rounding = str(n.target) == "quantized_decomposed.quantize_per_tensor.default"
        if is_rounding and KNOWN_RANGE not in n.all_input_nodes[0].meta:
            source: Any = self.fetch_args_kwargs_from_env(n)[0][0]
            low, high = _range_of(n)
            half: Any = n.args[1]
            below = (source < low - half / 2) & (source > HIDDEN)  # what a mask hides is meant so
            beyond = below | (source > high + half / 2)
            before = self.counts.get(n, (0, 0))
            self.counts[n] = (before[0] + int(beyond.sum()), before[1] + source.numel())
        return super().run_node(n)


def _range_of(node: fx.Node) -> tuple[float, float]:
    numbers: Any = node.args[1:5]
    scale, zero, low, high = numbers
    return (low - zero) * scale, (high - zero) * scale
