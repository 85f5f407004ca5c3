"""Compute the channels that a PAD adds where the padded map is made: rows of zero weights.

Vela fills padded channels by copying zeros from the constants and the map beside them. A
convolution with rows of zero weights and zero biases gives the zero point there, which is what PAD
gives; an ADD of two zero points gives its own.

Conditions: a PAD after the last channel only, of the zero point. What makes the map and whatever
takes it must have a form of more channels: CONV_2D, ADD of two maps, other such PADs. A fused
activation keeps the zero point. All additional products are with zeros: exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.windows import CONVOLUTION, convolution_of, left_of
from mizzen.flatbuffer.tflite import Padding, TensorType


def pads_as_weights(draft: Draft) -> bool:
    """Take away every such PAD that can be; False without one."""
    changed = False
    for step in list(draft.steps):
        if step in draft.steps and (amount := _channels_added(step)):
            widening = _Widening(draft)
            if widening.needs(step.data, step.data.channels + amount):
                widening.apply()
                changed = True
    return changed


def is_window_pad(step: Step) -> bool:
    """Whether an operator pads rows and columns of an int8 map with its zero point."""
    if step.kind not in ("PAD", "PADV2") or len(step.data.shape) != 4:
        return False
    amounts = step.inputs[1]
    if amounts is None or amounts.values is None or amounts.values.size != 8:
        return False
    pads = pad_amounts(step)
    alone = not pads[0].any() and not pads[3].any() and step.data.type is TensorType.INT8
    return alone and _pads_with_zero(step)


def pad_amounts(step: Step) -> Array:
    """Return the elements that a PAD adds before and after, by axis."""
    amounts = step.inputs[1]
    assert amounts is not None, "a PAD has amounts"
    assert amounts.values is not None, "they are constant"
    return amounts.values.reshape(-1, 2)


def _channels_added(step: Step) -> int:
    """Return how many channels a PAD adds after the others; 0 if it does anything else."""
    if step.kind not in ("PAD", "PADV2") or len(step.data.shape) != 4:
        return 0
    amounts = step.inputs[1]
    if amounts is None or amounts.values is None or step.data.type is not TensorType.INT8:
        return 0
    pairs = amounts.values.reshape(-1, 2)
    alone = pairs.shape[0] == 4 and not pairs[:3].any() and pairs[3, 0] == 0
    return int(pairs[3, 1]) if alone and _pads_with_zero(step) else 0


def _pads_with_zero(step: Step) -> bool:
    """Whether a PAD keeps the numbers, and gives the zero point besides."""
    data, result = step.data, step.result
    zeros = data.zero_points
    alike = np.array_equal(zeros, result.zero_points) and np.array_equal(data.scales, result.scales)
    if not alike or zeros.size != 1:
        return False
    given = step.inputs[2] if len(step.inputs) > 2 else None
    return given is None or (given.values is not None and bool(np.all(given.values == zeros)))


def pads_as_same(draft: Draft) -> bool:
    """Let windows pad themselves what a PAD gives them, where SAME is that; False without one.

    Conditions: the PAD's amounts are those of TFLite's SAME, it pads the zero point, and a window
    without pads alone takes what it gives.
    """
    changed = False
    for step in list(draft.steps):
        user = draft.only_user(step.result) if step.kind in ("PAD", "PADV2") else None
        if user is not None and _is_same(step, user):
            user.inputs[0] = step.data
            user.fields["padding"] = int(Padding.SAME)
            draft.steps.remove(step)
            changed = True
    return changed


def _is_same(pad: Step, user: Step) -> bool:
    convolution = convolution_of(user)
    if (
        convolution is None
        or convolution.same
        or user.data is not pad.result
        or not is_window_pad(pad)
    ):
        return False
    amounts = pad_amounts(pad)
    strides = (int(user.fields["stride_h"]), int(user.fields["stride_w"]))
    return all(
        _same(pad.data.shape[axis + 1], user.result.shape[axis + 1],
              convolution.weights.shape[axis + 1], strides[axis]) == tuple(amounts[axis + 1])
        and user.result.shape[axis + 1] == -(-pad.data.shape[axis + 1] // strides[axis])
        for axis in range(2)
    )  # fmt: skip


def _same(extent: int, results: int, window: int, stride: int) -> tuple[int, int]:
    """Return the elements that SAME adds before and after."""
    total = max((results - 1) * stride + window - extent, 0)
    before = left_of(True, extent, results, window, stride)
    return before, total - before


@dataclass(slots=True)
class _Widening:
    """Maps that must have more channels, and what follows from it."""

    draft: Draft
    wanted: dict[Wire, int] = field(default_factory=dict[Wire, int])

    def needs(self, wire: Wire, channels: int) -> bool:
        """Let a map have at least so many channels; False where something has no form for that."""
        if channels <= self.channels(wire):
            return True
        if wire in self.draft.inputs or wire in self.draft.outputs or wire.values is not None:
            return False
        self.wanted[wire] = channels
        maker = self.draft.maker(wire)
        if maker is None or not self._makes(maker, channels):
            return False
        return all(self._takes(user, channels) for user in self.draft.users(wire))

    def channels(self, wire: Wire) -> int:
        """Return how many channels a map will have."""
        return self.wanted.get(wire, wire.channels)

    def _makes(self, step: Step, channels: int) -> bool:
        if _channels_added(step):
            return self.needs(step.data, channels)
        if step.kind == "ADD":
            return self._adds(step, channels)
        return step.kind == CONVOLUTION and convolution_of(step) is not None

    def _takes(self, step: Step, channels: int) -> bool:
        if _channels_added(step):
            least = max(channels, self.channels(step.result))
            return self.needs(step.result, least) and self.needs(step.data, least)
        if step.kind == "ADD":
            return self._adds(step, channels)
        return step.kind == CONVOLUTION and convolution_of(step) is not None

    def _adds(self, step: Step, channels: int) -> bool:
        """Let both operands of an ADD and its result have as many channels."""
        one, other = step.inputs[:2]
        if one is None or other is None or one.shape != other.shape:
            return False
        if step.result.type is not TensorType.INT8:
            return False
        return all(self.needs(wire, channels) for wire in (one, other, step.result))

    def apply(self) -> None:
        """Change the network."""
        for step in list(self.draft.steps):
            if step.kind == CONVOLUTION:
                self._widen(step)
            elif _channels_added(step) and self.channels(step.data) == self.channels(step.result):
                self._leave(step)
        for wire, channels in self.wanted.items():
            wire.shape = (*wire.shape[:3], channels)

    def _widen(self, step: Step) -> None:
        """Add rows and columns of zero weights to a convolution."""
        convolution = convolution_of(step)
        more_in = self.channels(step.data) - step.data.channels
        more_out = self.channels(step.result) - step.result.channels
        if convolution is None or not (more_in or more_out):
            return
        weights, bias = step.inputs[1], step.inputs[2] if len(step.inputs) > 2 else None
        assert weights is not None, "a convolution has weights"
        values = np.pad(convolution.weights, ((0, more_out), (0, 0), (0, 0), (0, more_in)))
        step.inputs[1] = self.draft.constant(weights, values, _longer(convolution.scales, more_out))
        if bias is not None and bias.values is not None:
            numbers = np.pad(bias.values, (0, more_out))
            step.inputs[2] = self.draft.constant(bias, numbers, _longer(bias.scales, more_out))

    def _leave(self, step: Step) -> None:
        """Let users of a PAD's result take what it pads."""
        for user in self.draft.users(step.result):
            user.inputs = [step.data if wire is step.result else wire for wire in user.inputs]
        self.draft.steps.remove(step)
        self.wanted.pop(step.result, None)


def _longer(scales: Array, count: int) -> Array:
    """Return scales for more channels: any do, where all products are zero."""
    return scales if scales.size <= 1 else np.concatenate([scales, np.repeat(scales[-1:], count)])
