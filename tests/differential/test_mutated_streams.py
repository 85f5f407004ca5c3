"""Damaged command streams and constants: a diagnostic or an answer, never anything else."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.conformance.cases import cases
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.program import Program

CODES = ("E5", "E6")
NETWORKS = (
    "conv_1x7x9x5_o11_k3x3_s1x1_d1x1_same_int8",
    "add_1x1x6x7_1x5x6x7_int8",
    "softmax_1x12_int8",
)
BITS = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 31))


@cache
def program(name: str, accelerator: str) -> Program:
    (case,) = (case for case in cases() if case.name == name)
    (step,) = mizzen.compile(case.build(), accelerator, prove="off").steps
    assert isinstance(step, NpuStep)
    return step.program


def outcome(made: Program) -> str:
    inputs = [np.zeros((2, *place.shape), place.dtype) for place in made.inputs]
    try:
        Simulator(made).run(inputs, 2)
    except MizzenError as error:
        return error.diagnostic.code
    return "ran"


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(NETWORKS),
    st.sampled_from(["ethos-u55-128", "ethos-u65-512"]),
    st.lists(BITS, min_size=1, max_size=6),
)
def test_flipped_bits_of_the_stream(
    name: str, accelerator: str, flips: list[tuple[float, int]]
) -> None:
    good = program(name, accelerator)
    words = good.words.copy()
    for place, bit in flips:
        words[int(place * len(words))] ^= np.uint32(1 << bit)
    assert outcome(replace(good, words=words)).startswith((*CODES, "ran"))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(NETWORKS[::2]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1),
)
def test_changed_constants(name: str, changes: list[tuple[float, int]]) -> None:
    good = program(name, "ethos-u55-128")
    constants = good.constants[0].copy()
    for place, value in changes:
        constants[int(place * len(constants))] = value
    assert outcome(replace(good, constants={0: constants})).startswith((*CODES, "ran"))


@given(st.sampled_from(NETWORKS), st.integers(0, 400))
def test_truncated_streams(name: str, length: int) -> None:
    good = program(name, "ethos-u55-128")
    if length < len(good.words):
        assert outcome(replace(good, words=good.words[:length])).startswith(CODES)


def test_the_good_programs_run() -> None:
    for name in NETWORKS:
        assert outcome(program(name, "ethos-u55-128")) == "ran"
