"""Our own code is what its schedule says, and that what the network does: in every constant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.region_step import RegionStep
from mizzen.artifact.steps import read_network
from mizzen.compiler.backend import resolve_target
from mizzen.compiler.ethos_u.constants import Judged, judged
from mizzen.compiler.ethos_u.constants.surroundings import rational
from mizzen.compiler.ethos_u.constants.weights import Layer, matched, sums_of, uneven
from mizzen.compiler.ethos_u.inside import Differing, Inside
from mizzen.compiler.ethos_u.proof import RegionProof
from mizzen.compiler.ethos_u.regions import OwnCode
from mizzen.compiler.ethos_u.tflite import TfliteRegions
from mizzen.compiler.ethos_u.witness import witness_of
from mizzen.compiler.options import CompileOptions
from mizzen.compiler.proof.disagreement import Disagreement
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.regions import computed, region_step
from mizzen.conformance.cases import cases
from mizzen.cpu.softmax import exponentials
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.partition import extract
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.witness import (
    Mismatch,
    SaidConvolution,
    SaidElementwise,
    SaidMap,
    SaidStep,
    SaidTransfer,
    Witness,
    mismatches,
)
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex

from .networks import Net, report_of
from .test_rules import MISTAKES, convolution, planted, wide_product

ACCELERATORS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256", "ethos-u85-1024")
U55 = ACCELERATORS[0]
OWN = {"generator": "own"}
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
CONSTANTS = int(RegionIndex.READ_ONLY)


class Made:
    """A network's code, whose whole is on the NPU, before anything of it is proved."""

    def __init__(self, data: bytes, accelerator: str = U55) -> None:
        configuration = resolve_target(
            CompileOptions(accelerator, target_options=OWN)
        ).configuration
        self.model = read_network(data, "network")
        lowered = lower_with_state(self.model)
        groups = sorted({each.group for each in lowered.graph if each.group is not None})
        regions = TfliteRegions(configuration, lowered)
        code = regions.compile(extract(lowered.graph, groups, "network"), None)
        assert isinstance(code, OwnCode)
        self.code = code
        self.part = extract(lowered.graph, groups, "network")
        self.proof = RegionProof(self.model, lowered, ProofOptions())
        self.witness = witness_of(code.program.schedule)
        self.step = region_step(code)

    def executed(self, program: Program) -> RegionFindings:
        """Return what the proof says of another program."""
        step = with_program(self.step, program)
        return self.proof.executed(self.code, step, self.part, ProofOptions())

    def judged(self, witness: Witness) -> Judged:
        """Return what is said of the constants of another witness."""
        operators = self.model.main.operators
        return judged(
            witness,
            self.code.operations,
            lambda each: exponentials(self.model, operators[each.group or 0]),
        )


def with_program(step: RegionStep, program: Program) -> RegionStep:
    other = copy(step)
    for known in ("simulator", "hazards"):
        other.__dict__.pop(known, None)
    other.program = program
    return other


def logistic() -> bytes:
    net = Net()
    made = net.tensor("made", (1, 4, 4, 8), "int8", 1 / 256, -128)
    net.operator("LOGISTIC", [net.sum], [made])
    return net.finish([net.first, net.second], [made])


def softmax() -> bytes:
    net = NetworkBuilder("softmax")
    x = net.tensor("x", (1, 4, 10), "int8", 0.1, 3)
    made = net.tensor("made", (1, 4, 10), "int8", 1 / 256, -128)
    net.operator("SOFTMAX", [x], [made], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([x], [made])


def conforming(name: str) -> bytes:
    return next(each for each in cases() if each.name == name).build()


NETWORKS: dict[str, Callable[[], bytes]] = {
    "convolution": convolution,
    "logistic": logistic,
    "softmax": softmax,
    "product": wide_product,
    "digits": DIGITS.read_bytes,
}


@pytest.fixture(scope="module", params=[(n, a) for n in NETWORKS for a in ACCELERATORS], ids=str)
def made(request: pytest.FixtureRequest) -> Made:
    name, accelerator = request.param
    return Made(NETWORKS[name](), accelerator)


def test_right_code_is_what_it_says(made: Made) -> None:
    program = made.step.program
    assert not list(mismatches(made.witness, program, made.step.simulator.plan))
    findings = made.executed(program)
    assert findings.wrong is None
    assert findings.proof.constants
    assert not findings.proof.own
    assert len(made.witness.steps) == len(made.step.simulator.plan.steps)


def flipped(program: Program, place: int, bit: int) -> Program:
    data = program.constants[CONSTANTS].copy()
    data[place] ^= np.uint8(1 << bit)
    return replace(program, constants={**program.constants, CONSTANTS: data})


def test_no_bit_of_a_constant_that_is_decoded_may_be_another(made: Made) -> None:
    """Whatever it is: what is decoded differs, or cannot be decoded; the rest is never read."""
    program, rng = made.step.program, np.random.default_rng(2)
    right = made.step.simulator.plan
    size = len(program.constants[CONSTANTS])
    for place in rng.integers(0, size, 24).tolist() if size else ():
        wrong = flipped(program, place, int(rng.integers(8)))
        try:
            plan = Simulator(wrong).plan
        except mizzen.MizzenError:
            continue
        same = same_constants(right, plan)
        findings = list(mismatches(made.witness, wrong, plan))
        assert findings or same, place


def same_constants(one: Any, other: Any) -> bool:
    tables = all(np.array_equal(table, other.tables[at]) for at, table in one.tables.items())
    return tables and all(
        np.array_equal(known.weights, other.encoded[at].weights)
        and np.array_equal(known.scales.bias, other.encoded[at].scales.bias)
        and np.array_equal(known.scales.multiplier, other.encoded[at].scales.multiplier)
        and np.array_equal(known.scales.shift, other.encoded[at].scales.shift)
        for at, known in one.encoded.items()
    )


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each[0])
def test_each_register_that_is_another_is_named(mistake: tuple[str, str, int]) -> None:
    made = Made(convolution())
    findings = made.executed(planted(made.step.program, *mistake))
    assert isinstance(findings.wrong, Disagreement | mizzen.MizzenError)
    if isinstance(findings.wrong, Disagreement):
        assert findings.group is not None
        assert findings.wrong.wanted != findings.wrong.came
        assert findings.wrong.origin.kind in ("CONV_2D", "ADD")


FIELDS = {
    "SET_OFM_SCALE": ("scale", 1, "scale"),
    "SET_OFM_ZERO_POINT": ("zero_point", 1, "ofm zero point"),
    "SET_IFM_ZERO_POINT": ("zero_point", 1, "ifm zero point"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_the_field_and_both_values_are_told(name: str) -> None:
    field, change, told = FIELDS[name]
    made = Made(wide_product())
    findings = made.executed(planted(made.step.program, name, field, change)).wrong
    assert isinstance(findings, Disagreement)
    assert findings.field == told
    assert str(findings) == (
        f"{told} of {findings.operation}: {findings.came} in the command stream, "
        f"{findings.wanted} in its schedule"
    )


# A witness that is wrong


def numbers(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields of a step that are numbers, arrays, or tuples of numbers."""
    if is_dataclass(value):
        for field in fields(value):
            if field.name not in ("origin", "tensor", "start"):
                yield from numbers(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, tuple) and any(map(is_dataclass, value)):
        for place, part in enumerate(value):
            yield from numbers(part, (*path, str(place)))
    elif isinstance(value, int | tuple | np.ndarray) and not isinstance(value, bool | Enum):
        yield path


def changed(value: Any, path: tuple[str, ...]) -> Any:
    """Return a step with another number at a path; in arrays and tuples the first one."""
    if path and isinstance(value, tuple):
        parts, at = list(value), int(path[0])
        parts[at] = changed(parts[at], path[1:])
        return tuple(parts)
    if path:
        return replace(value, **{path[0]: changed(getattr(value, path[0]), path[1:])})
    if isinstance(value, np.ndarray):
        other = value.copy()
        other.flat[0] += 1
        return other
    if isinstance(value, tuple):
        return (value[0] + 1, *value[1:]) if value else value
    return value + 1


SILENT = {
    "split",  # beyond the map, rows of its first tile say nothing
    "layout",
    "shape",  # of an input, larger than what is read of it
    "most_bytes",
    "shift",  # of operands of sums with two scales
    "clip_range",
    "zero_point",  # of numbers in 32 bits
    "streams",
    "minimum",  # below what the type holds
    "maximum",
    "strides",
    "scale",
    "scale_mode",
    "multiplier",
}
"""Fields some of whose numbers mean nothing to some operations."""


@pytest.mark.parametrize("name", ["convolution", "logistic", "product"])
def test_a_witness_that_says_anything_else_differs(name: str) -> None:
    made = Made(NETWORKS[name]())
    plan, seen = made.step.simulator.plan, set[str]()
    for place, said in enumerate(made.witness.steps):
        for path in numbers(said):
            step = changed(said, path)
            findings = differing(made, plan, place, step)
            if findings:
                seen.add(path[-1])
            else:
                assert path[-1] in SILENT, (place, path)
    told = {"bases", "region", "zero_point", "strides"}
    assert told <= seen
    if name == "convolution":
        assert {"weights", "biases", "multipliers", "shifts", "height", "pad_top"} <= seen
    if name == "logistic":
        assert "table" in seen


def differing(made: Made, plan: Any, place: int, step: SaidStep) -> list[Mismatch]:
    steps = (*made.witness.steps[:place], step, *made.witness.steps[place + 1 :])
    return list(mismatches(replace(made.witness, steps=steps), made.step.program, plan))


def test_a_witness_of_fewer_steps_differs() -> None:
    made = Made(convolution())
    plan = made.step.simulator.plan
    fewer = replace(made.witness, steps=made.witness.steps[:-1])
    (findings,) = mismatches(fewer, made.step.program, plan)
    assert (findings.field, findings.said, findings.read) == (
        "number of steps", len(plan.steps) - 1, len(plan.steps),
    )  # fmt: skip


def with_convolution(witness: Witness, change: Callable[[SaidConvolution], Any]) -> Witness:
    """Return a witness whose convolutions are others."""
    return replace(
        witness,
        steps=tuple(
            change(said) if isinstance(said, SaidConvolution) else said for said in witness.steps
        ),
    )


def one_more(array: Any, place: int = 0) -> Any:
    other = array.copy()
    other.flat[place] += 1
    return other


def other_channels(said: SaidConvolution, name: str) -> SaidConvolution:
    value = one_more(getattr(said.channels, name))
    return replace(said, channels=replace(said.channels, **{name: value}))


WRONG_CONSTANTS: dict[str, Callable[[SaidConvolution], SaidConvolution]] = {
    "weights": lambda said: replace(said, weights=one_more(said.weights, 5)),
    "bias": lambda said: other_channels(said, "biases"),
    "scale": lambda said: other_channels(said, "multipliers"),
}


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("field", WRONG_CONSTANTS)
def test_constants_of_the_schedule_are_the_networks(field: str, accelerator: str) -> None:
    """Both the stream and its witness may be wrong alike: of what the network is, they know."""
    made = Made(convolution(), accelerator)
    assert made.judged(made.witness).wrong is None
    findings = made.judged(with_convolution(made.witness, WRONG_CONSTANTS[field])).wrong
    assert findings is not None
    assert findings.disagreement.field == field
    assert findings.operation.kind == "CONV2D"


def test_a_shift_that_is_another_is_no_rescale() -> None:
    made = Made(convolution())
    other = with_convolution(made.witness, lambda said: other_channels(said, "shifts"))
    findings = made.judged(other).wrong
    assert findings is not None
    assert findings.disagreement.field == "scale"


def test_a_scale_of_the_schedule_is_the_networks() -> None:
    made = Made(wide_product())
    steps = tuple(
        replace(said, scale=replace(said.scale, multiplier=said.scale.multiplier + 2))
        if isinstance(said, SaidElementwise) and said.scale is not None
        else said
        for said in made.witness.steps
    )
    findings = made.judged(replace(made.witness, steps=steps)).wrong
    assert findings is not None
    assert findings.disagreement.field == "scale"


@pytest.mark.parametrize("build", [logistic, softmax])
def test_entries_of_tables_are_the_networks(build: Callable[[], bytes]) -> None:
    made = Made(build())
    tables = 0
    for place, said in enumerate(made.witness.steps):
        if isinstance(said, SaidTransfer) or said.activation.table is None:
            continue
        for entry in (0, 100, 255):
            table = one_more(said.activation.table, entry)
            other = replace(said, activation=replace(said.activation, table=table))
            steps = (*made.witness.steps[:place], other, *made.witness.steps[place + 1 :])
            findings = made.judged(replace(made.witness, steps=steps)).wrong
            assert findings is not None
            assert findings.disagreement.field == "table"
            assert findings.disagreement.index == (entry,)
            tables += 1
    assert tables


# Inside


def test_the_first_operation_that_is_wrong_is_named() -> None:
    made = Made(logistic())
    reference = dict(made.proof._reference)
    inputs = [reference[value.name] for value in made.part.inputs]
    other = reference["made"].copy()
    other[0, 0, 1, 2, 3] ^= 1
    step = made.step
    for wanted, is_right in ((reference, True), ({**reference, "made": other}, False)):
        inside = Inside(made.witness, step.simulator.plan, made.code.operations, wanted)
        simulator = inside.simulator(step.simulator)
        computed(made.code, inputs, len(inputs[0]), step=step, simulator=simulator)
        seen = inside.compared()
        assert isinstance(seen, Differing) is not is_right
        if isinstance(seen, Differing):
            assert (seen.difference.differing, seen.difference.where) == (1, (1, 2, 3))
        else:
            assert seen == {"made"}


def requantized_parts() -> bytes:
    """A sum that gets another scale in the same operation, of which parts are taken apart."""
    net = Net()
    other = net.tensor("other", (1, 4, 4, 8), "int8", 0.05, 11)
    net.operator("QUANTIZE", [net.sum], [other], ("QuantizeOptions", {}))
    absolute = net.tensor("absolute", (1, 4, 4, 8), "int8", 0.05, 11)
    net.operator("ABS", [other], [absolute], ("AbsOptions", {}))
    parts = [net.tensor(f"part-{place}", (1, 4, 4, 4), "int8", 0.05, 11) for place in range(2)]
    axis = net.constant("axis", np.array(3, np.int32))
    net.operator("SPLIT", [axis, other], parts, ("SplitOptions", {"num_splits": 2}))
    return net.finish([net.first, net.second], [absolute, *parts])


def curve_of_another_scale() -> bytes:
    """TANH of 16 bits between numbers of 8."""
    net = Net()
    wide = net.tensor("wide", (1, 4, 4, 8), "int16", 2.0**-12)
    net.operator("QUANTIZE", [net.sum], [wide], ("QuantizeOptions", {}))
    curve = net.tensor("curve", (1, 4, 4, 8), "int16", 2.0**-15)
    net.operator("TANH", [wide], [curve])
    made = net.tensor("made", (1, 4, 4, 8), "int8", 0.0079, 2)
    net.operator("QUANTIZE", [curve], [made], ("QuantizeOptions", {}))
    return net.finish([net.first, net.second], [made])


def curve_and_a_difference() -> bytes:
    """A product of a sigmoid, and one less it, all of which one table may have."""
    net = Net()
    curve = net.tensor("curve", (1, 4, 4, 8), "int8", 1 / 256, -128)
    net.operator("LOGISTIC", [net.sum], [curve])
    one = net.constant("one", np.array([127], np.int8), 1 / 127)
    made = net.tensor("made", (1, 4, 4, 8), "int8", 1 / 256, -128)
    net.operator("SUB", [one, curve], [made], ("SubOptions", {}))
    product = net.tensor("product", (1, 4, 4, 8), "int8", 0.1)
    net.operator("MUL", [curve, net.first], [product], ("MulOptions", {}))
    both = net.tensor("both", (1, 4, 4, 8), "int8", 0.1)
    net.operator("MUL", [made, net.second], [both], ("MulOptions", {}))
    return net.finish([net.first, net.second], [product, both])


def joined_minimum() -> bytes:
    """A minimum whose operand is repeated first, written where it is joined with another map."""
    net = NetworkBuilder("joined")
    x = net.tensor("x", (1, 1, 4, 4), "int8", 0.1)
    y = net.tensor("y", (1, 1, 1, 4), "int8", 0.1)
    least = net.tensor("least", (1, 1, 4, 4), "int8", 0.1)
    net.operator("MINIMUM", [y, x], [least], ("MaximumMinimumOptions", {}))
    made = net.tensor("made", (1, 1, 5, 4), "int8", 0.1)
    net.operator("CONCATENATION", [y, least], [made], ("ConcatenationOptions", {"axis": 2}))
    return net.finish([x, y], [made])


def padded_for_a_sum() -> bytes:
    """A narrow map, padded with channels so that it can be added to a wide one."""
    net, draw = NetworkBuilder("padded"), np.random.default_rng(3)
    x = net.tensor("x", (1, 8, 8, 8), "int8", 0.1, 3)
    wide = net.tensor("wide", (1, 8, 8, 16), "int8", 0.1, -4)
    weights = draw.integers(-127, 128, (12, 1, 1, 8)).astype(np.int8)
    kernel = net.constant("kernel", weights, 0.02)
    bias = net.constant("bias", draw.integers(300, 900, 12).astype(np.int32), 0.1 * 0.02)
    narrow = net.tensor("narrow", (1, 8, 8, 12), "int8", 0.3, 5)
    options = {"padding": 1, "stride_h": 1, "stride_w": 1}
    net.operator("CONV_2D", [x, kernel, bias], [narrow], ("Conv2DOptions", options))
    channels = net.constant("channels", np.array([[0, 0]] * 3 + [[0, 4]], np.int32))
    padded = net.tensor("padded", (1, 8, 8, 16), "int8", 0.3, 5)
    net.operator("PAD", [narrow, channels], [padded], ("PadOptions", {}))
    made = net.tensor("made", (1, 8, 8, 16), "int8", 0.3, 5)
    net.operator("ADD", [padded, wide], [made], ("AddOptions", {}))
    return net.finish([x, wide], [made])


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize(
    "build",
    [
        padded_for_a_sum,
        requantized_parts,
        curve_of_another_scale,
        curve_and_a_difference,
        joined_minimum,
    ],
)
def test_nothing_is_said_of_operations_that_are_done_together(
    build: Callable[[], bytes], accelerator: str
) -> None:
    quiet(build(), accelerator)


def test_operations_inside_are_seen() -> None:
    report = report_of(mizzen.compile(DIGITS, U55))
    assert report.proof.watched >= 5
    assert not report.proof.own


def test_states_of_recurrent_layers_are_proved() -> None:
    """Curves of 16 bits that are parts of an operator have no tensors of the network."""
    report = report_of(mizzen.compile(conforming("lstm_int8"), U55))
    assert not report.on_cpu
    assert report.proof.equal == 1
    assert report.proof.constants
    assert not report.proof.own


# No false alarm

REFUSED = ("squared_difference",)
"""Operators whose results of 32 bits may not fit, which the simulator refuses."""


def quiet(data: bytes | Path, accelerator: str) -> None:
    report = report_of(mizzen.compile(data, accelerator, target_options=OWN))
    assert not [said for said in report.diagnostics if said.code == "W307"]
    assert not [tried for choice in report.code for tried in choice.tried]


SAMPLE = [each for each in cases() if not each.name.startswith(REFUSED)]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("case", SAMPLE[::24], ids=lambda each: each.name)
def test_nothing_is_said_of_right_code(case: Any, accelerator: str) -> None:
    quiet(case.build(), accelerator)


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("case", SAMPLE, ids=lambda each: each.name)
def test_nothing_is_said_of_any_case(case: Any, accelerator: str) -> None:
    quiet(case.build(), accelerator)


def test_tensors_whose_axes_are_exchanged_are_seen_as_they_lie(models: Path) -> None:
    """Where most numbers are zero, a map with exchanged axes is much like the tensor as it is."""
    artifact = mizzen.compile(models / "kws_ref_model.tflite", U55)
    assert not report_of(artifact).code[0].tried
    assert report_of(artifact).proof.watched >= 6


@pytest.mark.sweep
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_nothing_is_said_of_models(models: Path, accelerator: str) -> None:
    for path in sorted(models.glob("*.tflite")):
        quiet(path, accelerator)


def test_maps_say_where_they_lie(made: Made) -> None:
    """Each map is of a tensor there is, and is a constant, has a place, or is handed on."""
    for said in made.witness.steps:
        if isinstance(said, SaidTransfer):
            continue
        for map_ in (said.ifm, said.ofm):
            assert isinstance(map_, SaidMap)
            assert 0 <= map_.tensor < len(made.witness.tensors)
            nowhere = map_.constant is not None or map_.link is not None
            assert (map_.place is None) == nowhere


# What is known of weights


def layer(kernels: Any) -> Layer:
    return Layer(np.asarray(kernels, np.int64), np.zeros(len(kernels), np.int64), 0)


def test_channels_are_known_by_their_numbers_in_any_order_and_by_parts_of_them() -> None:
    kernels = np.arange(1, 25).reshape(2, 3, 4, 1)
    known = layer(kernels)
    moved = np.flip(kernels, (1, 2))
    part = kernels[:, 1:, 2:]
    matches = matched(known, [sums_of(moved, (1, 2, 3)), sums_of(part, (1, 2, 3))])
    assert matches.channels == (((0,), (1,)), ((0,), (1,)))
    assert matches.first_unknown is None
    other = kernels.copy()
    other[1, 0, 0, 0] += 1
    assert matched(known, [sums_of(other, (1, 2, 3))]).first_unknown == (0, 1)


def test_each_channel_is_there_as_often_as_others() -> None:
    known = layer(np.arange(1, 13).reshape(3, 2, 2, 1))
    words = known.words
    assert uneven(known, [words, words]) is None
    assert uneven(known, [words, words[[0, 1, 1]]]) == 2
    shifts = np.zeros((3, 3, 1, 1), np.int64)
    shifts[0, 0], shifts[1, 1], shifts[2, 1] = 5, 6, 7
    cut = sums_of(shifts[:, 1:], (1, 2, 3))
    assert uneven(layer(shifts), [layer(shifts).words, cut]) is None


def test_of_kernels_with_many_parts_none_is_said_to_be_wrong() -> None:
    large = layer(np.ones((2, 64, 64, 1), np.int64))
    assert not large.knows_parts
    assert matched(large, [np.array([1, 2], np.uint64)]).channels == (((), ()),)


def test_a_scale_has_one_form() -> None:
    assert rational(1 << 30, 30) == (1, 0)
    assert rational(3 << 4, 6) == (3, 2)
    assert rational(0, 9) == (0, 0)
