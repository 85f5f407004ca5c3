"""A program of frameworks' operators as one of the runtime's kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mizzen.diagnostics import fail
from mizzen.package.c.lowering import (
    aten_functions,
    aten_windows,
    elementwise,
    movement,
    quantization,
    reduction,
    resizing,
    signal,
    tflite_elementwise,
    tflite_lookups,
    tflite_movement,
    tflite_reduction,
    tflite_state,
    tflite_windows,
)
from mizzen.package.c.lowering.context import WAY_ON, Given, Lowering, Rule, Tabulate
from mizzen.package.device import DeviceProgram, NpuCall

RULES: Mapping[str, Rule] = {
    **movement.RULES,
    **elementwise.RULES,
    **reduction.RULES,
    **quantization.RULES,
    **signal.RULES,
    **tflite_elementwise.RULES,
    **tflite_movement.RULES,
    **tflite_lookups.RULES,
    **tflite_windows.RULES,
    **tflite_reduction.RULES,
    **tflite_state.RULES,
    **resizing.RULES,
    **aten_windows.RULES,
    **aten_functions.RULES,
}
"""What lowers each operator, by its framework's name."""


def lower(program: DeviceProgram, tabulate: Tabulate) -> DeviceProgram:
    """Return the program with every kernel call one of the runtime's own.

    tabulate  what fills tables of functions of 8 or 16 bits

    E464 for an operator without a rule, E465 where a rule does not take its types or shapes.
    """
    lowering = Lowering(program, tabulate)
    for call in program.calls:
        if isinstance(call, NpuCall):
            lowering.calls.append(call)
            continue
        rule = RULES.get(call.operator)
        if rule is None:
            raise fail(
                "E464",
                f"the C runtime must have a kernel for {call.operator}, and has none",
                origin=call.origin,
                help=WAY_ON,
            )
        rule(Given(lowering, call))
    return replace(program, tensors=tuple(lowering.tensors), calls=tuple(lowering.calls))
