"""Tables of streams against what operators compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.vela.proof import NetworkProof
from mizzen.compiler.ethos_u.vela.tables import wrong_table

from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u.bounds import bounds_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.frontends.tflite.lower import lower
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.system_config import resolve

ACCELERATORS = ("ethos-u55-128", "ethos-u85-256")


@dataclass(frozen=True)
class Case:
    """An operator of one tensor that is computed by a table."""

    kind: str
    dtype: str
    scale: float
    result: tuple[float, int]
    options: tuple[str, dict[str, object]] | None = None

    def network(self) -> bytes:
        net = NetworkBuilder()
        source = net.tensor("x", (1, 4, 4, 10), self.dtype, self.scale, 3)
        result = net.tensor("y", (1, 4, 4, 10), self.dtype, *self.result)
        net.operator(self.kind, [source], [result], self.options)
        return net.finish([source], [result])


CASES = [
    Case("SOFTMAX", "int8", 0.05, (1 / 256, -128), ("SoftmaxOptions", {"beta": 1.0})),
    Case("SOFTMAX", "int8", 0.3, (1 / 256, -128), ("SoftmaxOptions", {"beta": 0.7})),
    Case("SOFTMAX", "uint8", 0.11, (1 / 256, 0), ("SoftmaxOptions", {"beta": 1.0})),
    Case("LOGISTIC", "int8", 0.03, (1 / 256, -128)),
    Case("LOGISTIC", "uint8", 0.03, (1 / 256, 0)),
    Case("TANH", "int8", 0.02, (1 / 128, 0)),
    Case("HARD_SWISH", "int8", 0.05, (0.03, -100)),
    Case("LEAKY_RELU", "int8", 0.05, (0.03, 4), ("LeakyReluOptions", {"alpha": 0.1})),
]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("case", CASES, ids=lambda row: f"{row.kind}-{row.dtype}-{row.scale}")
def test_each_entry_is_compared(case: Case, accelerator: str) -> None:
    data = case.network()
    model = read_network(data, "net")
    compiled = compile_with_cpu_fallback(model, data, resolve(accelerator)).compiled
    network = read_network(compiled.network, "net")
    contents = contents_of(network)
    (step,) = contents.steps
    assert isinstance(step, NpuStep)
    (table,) = step.simulator.plan.tables.values()
    lowered = lower(model)
    (operator,) = model.main.operators
    assert wrong_table(lowered, operator, table) is None
    rng = np.random.default_rng(1)
    for place in rng.integers(len(table), size=32):
        other = table.copy()
        other[place] ^= np.uint8(1 << rng.integers(8))
        found = wrong_table(lowered, operator, other)
        assert found is not None
        assert (found.differing, found.elements) == (1, 256)
        assert found.where == (place // (len(table) // 256),)
    proof = NetworkProof(model, lowered, ProofOptions(), bounds_of(model))
    assert proof.check(compiled, network, contents).holds
    table[7] ^= np.uint8(1)
    assert list(proof.check(compiled, network, contents).wrong) == [0]


def test_tables_of_other_functions_say_nothing() -> None:
    model = read_network(CASES[3].network(), "net")
    (operator,) = model.main.operators
    other = np.arange(256, dtype=np.uint8)[::-1]
    assert wrong_table(lower(model), operator, other) is None
    assert wrong_table(lower(model), operator, np.zeros(2048, np.uint8)) is None
