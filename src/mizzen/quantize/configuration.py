"""Quantisation configurations: how the integers of activations and weights are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import Node
from torchao.quantization.pt2e.quantizer import (
    DerivedQuantizationSpec,
    QuantizationSpec,
    QuantizationSpecBase,
)

from mizzen.diagnostics import fail
from mizzen.quantize.hiding import (
    HidingFakeQuantize,
    HidingObserver,
    MaskFakeQuantize,
    MaskObserver,
)
from mizzen.quantize.nodes import SELECTED, module_stack
from mizzen.quantize.observers import (
    ActivationFakeQuantize,
    ActivationObserver,
    FakeQuantizePerChannel,
    RangeObserver,
    WeightObserver,
    WeightPerChannelObserver,
    fake_quantize,
    with_arguments,
)

INT8_EPSILON = 2.0**-16
INT16_EPSILON = 2.0**-24
"""The least scale of 16-bit activations: a range of 2**-9 still uses all its steps."""


@dataclass(frozen=True)
class QuantizationConfig:
    """One scheme: the integers of activations, of constants among them, and of weights.

    `weight` is None where a scheme is for inputs and outputs only.
    """

    label: str
    activation: QuantizationSpec
    constant: QuantizationSpec
    weight: QuantizationSpec | None
    is_qat: bool = False

    @property
    def bits(self) -> int:
        """Width of an activation's integer."""
        return torch.iinfo(self.activation.dtype).bits

    def wide(self) -> QuantizationConfig:
        """Return the same with 16-bit activations."""
        wide = get_symmetric_a16w8_quantization_config(is_qat=self.is_qat)
        return replace(wide, weight=self.weight)

    def observer(self) -> torch.nn.Module:
        """Return a new observer (or fake-quantiser) of an activation."""
        spec: Any = self.activation
        return with_arguments(
            spec.observer_or_fake_quant_ctr,
            dtype=spec.dtype,
            quant_min=spec.quant_min,
            quant_max=spec.quant_max,
            qscheme=spec.qscheme,
        )()

    def mask_spec(self) -> QuantizationSpec:
        """Return the spec of an input that hides scores."""
        constructor = with_arguments(MaskObserver, eps=INT8_EPSILON)
        if self.is_qat:
            constructor = _follows(MaskFakeQuantize, INT8_EPSILON)
        return replace(self.activation, observer_or_fake_quant_ctr=constructor)

    def hiding_spec(self, times: float) -> QuantizationSpec:
        """Return the spec of scores that hides some, so many times as far below as it must."""
        constructor = with_arguments(HidingObserver, eps=INT8_EPSILON, times=times)
        if self.is_qat:
            constructor = _follows(HidingFakeQuantize, INT8_EPSILON, times=times)
        return replace(self.activation, observer_or_fake_quant_ctr=constructor)

    def weight_spec(self, channel_axis: int | None) -> QuantizationSpec | None:
        """Return the weights' spec with their channels along `channel_axis`; None: one scale."""
        if self.weight is None or self.weight.ch_axis is None:
            return self.weight
        if channel_axis is not None:
            return replace(self.weight, ch_axis=channel_axis)
        return _weight(
            False, self.is_qat, _integer(self.weight.quant_min), _integer(self.weight.quant_max)
        )

    def bias_spec(self, edges: list[Any], channel_axis: int | None) -> QuantizationSpecBase:
        """Return the bias' spec: int32 with the product of the scales of input and weight.

        `edges` are input and weight, as (producer, consumer). Ref: TOSA 1.0, 2.3.3 CONV2D.
        """
        weight = None if channel_axis is None else self.weight_spec(channel_axis)
        per_channel = weight is not None and weight.ch_axis is not None
        return DerivedQuantizationSpec(
            derived_from=edges,
            derive_qparams_fn=product_of_scales,
            dtype=torch.int32,
            quant_min=torch.iinfo(torch.int32).min,
            quant_max=torch.iinfo(torch.int32).max - 1,
            qscheme=torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric,
            ch_axis=0 if per_channel else None,
        )


def product_of_scales(observers: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the bias' scale, one for each channel, and its zero points, which are zero."""
    activation, weight = (observer.calculate_qparams()[0] for observer in observers)
    scale = activation.reshape(-1) * weight.reshape(-1)
    return scale, torch.zeros_like(scale, dtype=torch.int32)


def _integer(limit: int | None) -> int:
    return 0 if limit is None else limit


def _weight(per_channel: bool, is_qat: bool, low: int, high: int) -> QuantizationSpec:
    # The least scale is far below any weight's: a channel of zeros must not give a scale of zero.
    epsilon = 2.0**-24
    if is_qat:
        # Weights are what they are: the range is the last one, not an average.
        kind = FakeQuantizePerChannel if per_channel else ActivationFakeQuantize
        constructor = fake_quantize(kind, eps=epsilon, averaging_constant=1.0)
    else:
        observer = WeightPerChannelObserver if per_channel else WeightObserver
        constructor = with_arguments(observer, eps=epsilon)
    return QuantizationSpec(
        dtype=torch.int8,
        observer_or_fake_quant_ctr=constructor,
        quant_min=low,
        quant_max=high,
        qscheme=torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric,
        ch_axis=0 if per_channel else None,
    )


def _activation(
    dtype: torch.dtype, low: int, high: int, constructor: Any, scheme: torch.qscheme
) -> QuantizationSpec:
    return QuantizationSpec(
        dtype=dtype,
        observer_or_fake_quant_ctr=constructor,
        quant_min=low,
        quant_max=high,
        qscheme=scheme,
    )


def _check(low: int, high: int, least: int, greatest: int, what: str) -> None:
    if not least <= low < high <= greatest:
        raise fail(
            "E872",
            f"limits of {what} must be {least} <= minimum < maximum <= {greatest}, "
            f"and {low} and {high} came",
        )


def _refuse_dynamic(is_dynamic: bool) -> None:
    if is_dynamic:
        raise fail(
            "E873",
            "scales must be known when the network is compiled, and is_dynamic=True came",
            rule="Ethos-U has no operation that finds the range of a tensor",
            help="use is_dynamic=False, and calibrate",
        )


def _follows(kind: type[ActivationFakeQuantize], epsilon: float, **arguments: Any) -> Any:
    # The first batch sets the range; 0.01 follows it slowly, as training expects.
    return fake_quantize(kind, eps=epsilon, averaging_constant=0.01, **arguments)


def get_symmetric_quantization_config(
    is_per_channel: bool = True,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
    eps: float = INT8_EPSILON,
) -> QuantizationConfig:
    """Return the scheme a8w8: 8-bit activations with a zero point, 8-bit symmetric weights.

    Biases are int32. `eps` is the least scale of an activation. Raises E872 and E873.
    """
    _refuse_dynamic(is_dynamic)
    _check(act_qmin, act_qmax, -128, 127, "int8 activations")
    _check(weight_qmin, weight_qmax, -127, 127, "int8 weights")
    constant = observer = _follows(ActivationFakeQuantize, eps)
    if not is_qat:
        observer = with_arguments(ActivationObserver, eps=eps)
        constant = with_arguments(WeightObserver, eps=eps)
    spec = (torch.int8, act_qmin, act_qmax)
    return QuantizationConfig(
        f"a8w8 activations [{act_qmin}, {act_qmax}] weights [{weight_qmin}, {weight_qmax}]",
        _activation(*spec, observer, torch.per_tensor_affine),
        _activation(*spec, constant, torch.per_tensor_affine),
        _weight(is_per_channel, is_qat, weight_qmin, weight_qmax),
        is_qat,
    )


def get_symmetric_a8w4_quantization_config(
    is_per_channel: bool = True,
    is_qat: bool = False,
    is_dynamic: bool = False,
) -> QuantizationConfig:
    """Return the scheme a8w4: as a8w8, with weights of 4 bits in [-7, 7]. Raises E873."""
    return get_symmetric_quantization_config(
        is_per_channel, is_qat, is_dynamic, weight_qmin=-7, weight_qmax=7
    )


def get_symmetric_a16w8_quantization_config(
    is_per_channel: bool = True,
    is_qat: bool = False,
    is_dynamic: bool = False,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
    epsilon: float = INT16_EPSILON,
) -> QuantizationConfig:
    """Return the scheme a16w8: 16-bit symmetric activations, 8-bit symmetric weights.

    Biases are int32, added to sums of 48 bits. `epsilon` is the least scale of an activation.
    Raises E872 and E873.
    """
    _refuse_dynamic(is_dynamic)
    _check(weight_qmin, weight_qmax, -127, 127, "int8 weights")
    constant = observer = _follows(ActivationFakeQuantize, epsilon)
    if not is_qat:
        # With 65535 steps nothing is gained by cutting the range short.
        observer = with_arguments(RangeObserver, eps=epsilon)
        constant = with_arguments(WeightObserver, eps=epsilon)
    spec = (torch.int16, -32767, 32767)
    return QuantizationConfig(
        f"a16w8 weights [{weight_qmin}, {weight_qmax}]",
        _activation(*spec, observer, torch.per_tensor_symmetric),
        _activation(*spec, constant, torch.per_tensor_symmetric),
        _weight(is_per_channel, is_qat, weight_qmin, weight_qmax),
        is_qat,
    )


def get_uint8_io_quantization_config(is_qat: bool = False) -> QuantizationConfig:
    """Return the scheme for `set_io` only: unsigned bytes at the network's boundary."""
    observer = _follows(ActivationFakeQuantize, INT8_EPSILON)
    if not is_qat:
        observer = with_arguments(ActivationObserver, eps=INT8_EPSILON)
    spec = _activation(torch.uint8, 0, 255, observer, torch.per_tensor_affine)
    return QuantizationConfig("uint8 inputs and outputs", spec, spec, None, is_qat)


@dataclass(frozen=True)
class Choice:
    """A configuration that the user set for some nodes; None keeps them in floating point.

    turn    how many were set before it
    reason  why they stay in floating point, where they do
    """

    config: QuantizationConfig | None
    turn: int
    reason: str


@dataclass
class Selection:
    """What the user set. Of what fits a node the last that was set decides; else `everywhere` does.

    Among nested modules the innermost that something was set for counts.

    names, types  paths and types of modules to their choices
    finders       what finds nodes (a `NodeFinder`), with their choices
    """

    everywhere: QuantizationConfig | None = None
    boundary: QuantizationConfig | None = None
    names: dict[str, Choice] = field(default_factory=dict[str, Choice])
    types: dict[str, Choice] = field(default_factory=dict[str, Choice])
    finders: list[tuple[Any, Choice]] = field(default_factory=list[tuple[Any, Choice]])
    turns: int = 0

    def set_name(self, path: str, config: QuantizationConfig | None) -> None:
        """Set the configuration of a module."""
        said = f'set_module_name("{path}", None) keeps it in floating point'
        self.names[path] = self._choice(config, said)

    def set_type(self, kind: str, config: QuantizationConfig | None) -> None:
        """Set the configuration of modules of a type, given with the module that it is in."""
        said = f"set_module_type({kind.rpartition('.')[2]}, None) keeps it in floating point"
        self.types[kind] = self._choice(config, said)

    def set_found(self, finder: Any, config: QuantizationConfig | None) -> None:
        """Set the configuration of nodes that a finder finds."""
        said = "the configuration of this node keeps it in floating point"
        self.finders.append((finder, self._choice(config, said)))

    def _choice(self, config: QuantizationConfig | None, reason: str) -> Choice:
        self.turns += 1
        return Choice(config, self.turns, reason)

    def configuration(self, node: Node) -> QuantizationConfig | None:
        """Return the node's configuration, None where it stays in floating point."""
        choice = self._decides(node)
        return self.everywhere if choice is None else choice.config

    def reason(self, node: Node) -> str:
        """Say why `configuration` gave None."""
        choice = self._decides(node)
        return (
            "no configuration was set for it: see set_global" if choice is None else choice.reason
        )

    def _decides(self, node: Node) -> Choice | None:
        stack = module_stack(node)[::-1]
        named = (self.names[path] for path, _ in stack if path in self.names)
        typed = (self.types[kind] for _, kind in stack if kind in self.types)
        choices = (node.meta.get(SELECTED), next(named, None), next(typed, None))
        return max(
            (choice for choice in choices if choice is not None),
            key=lambda choice: choice.turn,
            default=None,
        )

    @property
    def configurations(self) -> list[QuantizationConfig]:
        """Return every configuration that was set."""
        choices = (
            *self.names.values(),
            *self.types.values(),
            *(finder for _, finder in self.finders),
        )
        configs = [self.everywhere, self.boundary, *(choice.config for choice in choices)]
        return [config for config in configs if config is not None]
