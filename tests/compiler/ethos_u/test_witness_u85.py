"""What only U85 has is held to the schedule too: its operations, scales, orders and chains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mizzen
from mizzen.compiler.proof.disagreement import Disagreement
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.witness import (
    SaidElementwise,
    SaidMatrixProduct,
    SaidOperation,
    SaidPooling,
    SaidResize,
    SaidTransfer,
)

from .test_rules import MISTAKES, convolution, planted
from .test_witness import (
    NETWORKS,
    SILENT,
    Made,
    changed,
    conforming,
    differing,
    flipped,
    numbers,
    same_constants,
)

U85 = "ethos-u85-256"
ALL = ("ethos-u85-128", U85, "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each[0])
def test_each_register_that_is_another_is_named(mistake: tuple[str, str, int]) -> None:
    made = Made(convolution(), U85)
    findings = made.executed(planted(made.step.program, *mistake))
    assert isinstance(findings.wrong, Disagreement | mizzen.MizzenError)


OWN_MISTAKES = [
    ("convolution", "SET_WEIGHT_FORMAT", "weight_format", 1),
    ("convolution", "SET_WEIGHT_FORMAT", "weight_sparsity", 1),
    ("convolution", "SET_ACC_FORMAT", "acc_format", 1),
    ("convolution", "SET_ACC_FORMAT", "acc_output", 1),
    ("convolution", "SET_OFM_PRECISION", "activation_reverse", 1),
    ("convolution", "SET_OFM_PRECISION", "scale_mode", 1),
    ("convolution", "SET_OFM_SCALE", "round_mode", 1),
    ("convolution", "SET_ACTIVATION", "activation_clip_range", 1),
    ("product", "SET_OFM_SCALE", "scale", 1),
    ("product", "SET_OFM_SCALE", "shift", 1),
    ("product", "SET_OFM_SCALE", "dbl_rnd", 1),
    ("softmax", "SET_IFM_BROADCAST", "broadcast_mode", 1),
    ("greater_1x5x6x7_1x1x1x7_int8", "SET_IFM2_BROADCAST", "broadcast_mode", 1),
    ("logistic", "SET_ACTIVATION", "table", 1),
    ("logistic", "SET_IFM_SCALE", "scale", 1),
    ("logistic", "SET_IFM2_SCALE", "shift", 1),
    ("batch_matmul", "OP_CONV", "weights_ifm2", -1),
    ("resize_bilinear_2_plain", "SET_RESIZE_X_OFFSET", "resize_x_offset", 1),
    ("resize_bilinear_2_plain", "SET_RESIZE_Y", "one_step_mod", 1),
]


@pytest.mark.parametrize("mistake", OWN_MISTAKES, ids=str)
def test_each_register_of_its_own_is_named(mistake: tuple[str, str, str, int]) -> None:
    name, register, field, change = mistake
    made = Made(NETWORKS[name]() if name in NETWORKS else conforming(name), U85)
    findings = made.executed(planted(made.step.program, register, field, change))
    assert isinstance(findings.wrong, Disagreement | mizzen.MizzenError)


@pytest.mark.parametrize("accelerator", ALL)
@pytest.mark.parametrize("name", ["convolution", "digits"])
def test_no_bit_of_a_constant_that_is_decoded_may_be_another(name: str, accelerator: str) -> None:
    made = Made(NETWORKS[name](), accelerator)
    program, rng, seen = made.step.program, np.random.default_rng(3), 0
    right = made.step.simulator.plan
    size = len(program.constants[0])
    for place in rng.integers(0, size, 24).tolist():
        wrong = flipped(program, place, int(rng.integers(8)))
        try:
            plan = Simulator(wrong).plan
        except mizzen.MizzenError:
            continue
        seen += made.executed(wrong).wrong is not None
        assert made.executed(wrong).wrong is not None or same_constants(right, plan), place
    assert seen


OPERATIONS: dict[str, type] = {
    "batch_matmul": SaidMatrixProduct,
    "resize_bilinear_2_plain": SaidResize,
    "transpose_0312_int8": SaidPooling,
    "reduce_max_1x3x4x5_axes123_int8": SaidPooling,
    "greater_1x1x6x7_1x5x6x7_int8": SaidElementwise,
    "leaky_relu_1x5x7x9_int16": SaidElementwise,
}
"""Cases of conformance, and what must be among their steps."""

ALSO_SILENT = {"left", "rounding"}
"""Of scales that do not shift."""


def other(said: SaidOperation, path: tuple[str, ...]) -> SaidOperation:
    """Return a step with another number at a path, or another order of axes."""
    if path[-1] == "axes":
        turned = said.order.axes[1:] + said.order.axes[:1]
        return replace(said, order=replace(said.order, axes=turned))
    return changed(said, path)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_witness_that_says_anything_else_differs(name: str) -> None:
    made = Made(conforming(name), U85)
    plan, seen = made.step.simulator.plan, set[str]()
    kinds = {type(said) for said in made.witness.steps}
    assert OPERATIONS[name] in kinds
    for place, said in enumerate(made.witness.steps):
        if isinstance(said, SaidTransfer):
            continue
        for path in numbers(said):
            if differing(made, plan, place, other(said, path)):
                seen.add(path[-1])
            else:
                assert path[-1] in SILENT | ALSO_SILENT, (place, path)
    assert {"bases", "region"} <= seen


SCALED = ("batch_matmul", "mul_1x5x6x7_1x1x1x7_int8", "mean_1x5x9x8_axes1_int8_rescaled")


@pytest.mark.parametrize("name", SCALED)
def test_a_scale_of_the_schedule_is_the_networks(name: str) -> None:
    """Both the stream and its witness may be wrong alike: of what the network is, they know."""
    made = Made(conforming(name), U85)
    wrong = 0
    for place, said in enumerate(made.witness.steps):
        if isinstance(said, SaidMatrixProduct | SaidElementwise | SaidPooling):
            if said.scale is None or said.scale.multiplier < 1 << 12:
                continue
            more = replace(said.scale, multiplier=said.scale.multiplier + 2)
            steps = [*made.witness.steps]
            steps[place] = replace(said, scale=more)
            findings = made.judged(replace(made.witness, steps=tuple(steps))).wrong
            wrong += findings is not None and findings.disagreement.field == "scale"
    assert wrong
