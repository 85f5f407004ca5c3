"""Operators by themselves: many more inputs than the network's proof has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.alone import wrong_alone
from mizzen.compiler.ethos_u.vela.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.vela.proof import NetworkProof

from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.ethos_u.vela import proof as proof_module
from mizzen.compiler.proof.difference import Difference
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.tflite_reference import Kernels
from mizzen.frontends.tflite import Operator
from mizzen.frontends.tflite.lower import Lowered, lower
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.judge.sim.machine import Simulator
from mizzen.targets.ethos_u.machine.commands import Arch, decode
from mizzen.targets.ethos_u.machine.system_config import resolve

LAST_ENTRY = 127
"""Zero point of the differences that number entries of the table."""

ONE_BIT = 1 << 21


def classifier() -> bytes:
    """FULLY_CONNECTED with great weights, then SOFTMAX: all rows that random inputs give are one
    great value and others that are nothing beside it."""
    net = NetworkBuilder()
    rng = np.random.default_rng(4)
    source = net.tensor("x", (1, 16), "int8", 0.1, 3)
    weights = net.constant("w", rng.integers(-127, 128, (6, 16), np.int8), scale=0.1)
    sums = net.tensor("s", (1, 6), "int8", 0.15, 5)
    net.operator("FULLY_CONNECTED", [source, weights], [sums], ("FullyConnectedOptions", {}))
    result = net.tensor("y", (1, 6), "int8", 1 / 256, -128)
    net.operator("SOFTMAX", [sums], [result], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([source], [result])


class Proved:
    """The classifier, compiled, and what was asked of SOFTMAX."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = classifier()
        model = read_network(data, "net")
        self.compiled = compile_with_cpu_fallback(model, data, resolve("ethos-u55-128")).compiled
        self.network = read_network(self.compiled.network, "net")
        self.contents = contents_of(self.network)
        (step,) = self.contents.steps
        assert isinstance(step, NpuStep)
        self.step = step
        self.proof = NetworkProof(
            model, lower(model), ProofOptions(Effort.THOROUGH), bounds_of(model)
        )
        self.said: dict[int, Difference | None] = {}

        def listened(
            simulator: Simulator,
            commands: set[int],
            lowered: Lowered,
            operator: Operator,
            known: dict[int, np.ndarray],
            kernels: Kernels,
            seed: int,
        ) -> Difference | None:
            found = wrong_alone(simulator, commands, lowered, operator, known, kernels, seed)
            self.said[operator.index] = found
            return found

        monkeypatch.setattr(proof_module, "wrong_alone", listened)

    def check(self, words: np.ndarray) -> list[int]:
        part = replace(self.step.part, program=replace(self.step.program, words=words))
        contents = replace(self.contents, steps=(NpuStep(self.step.family, part),))
        return list(self.proof.check(self.compiled, self.network, contents).wrong)


def test_what_the_network_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of the table of exponentials that is off moves all of a row alike, but its end."""
    proved = Proved(monkeypatch)
    words = proved.step.program.words.copy()
    assert proved.check(words) == []
    assert proved.said == {0: None, 1: None}
    (first, *_) = (
        row.offset_words
        for row in decode(words, Arch.U55)
        if row.name == "SET_OFM_ZERO_POINT" and row.values["zero_point"] == LAST_ENTRY
    )
    words[first] ^= np.uint32(ONE_BIT)
    proved.said.clear()
    assert proved.check(words) == [1]
    found = proved.said[1]
    assert found is not None
    assert (found.elements, found.steps) == (512 * 6, 1)
