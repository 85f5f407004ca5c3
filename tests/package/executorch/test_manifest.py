"""ExecuTorch's own runtime and reader pass over the manifest in a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mizzen
from mizzen.artifact.sealing import NAME, sealed
from mizzen.package.executorch.writing import write
from mizzen.report.manifest import NO_DIGEST, Facts, Proved, Source, find

from .executorch_oracle import imported, load, plan_of
from .test_in_two import DIGITS, INPUT, scaled

FACTS = Facts("mizzen 1.2.3", "none", Source("net"), {}, Proved(0, 0, NO_DIGEST, "not compared"))


def test_the_stock_runtime_gives_the_same_numbers() -> None:
    torch = imported("torch")
    bare = write(scaled([2.0, 3.0, 5.0, 7.0]))
    with_manifest = sealed(bare, "net.pte", FACTS)
    assert find(with_manifest) is not None
    results: list[object] = []
    for data in (bare, with_manifest):
        _, method = load(data)
        results.append(method.execute([torch.from_numpy(INPUT)])[0].numpy())
    np.testing.assert_array_equal(results[0], INPUT * [2, 3, 5, 7] + [2, 3, 5, 7])
    np.testing.assert_array_equal(results[1], results[0])


def test_a_program_with_a_delegate_is_taken(tmp_path: Path) -> None:
    mizzen.compile(DIGITS, "ethos-u55-128").save(tmp_path / "net.pte")
    data = (tmp_path / "net.pte").read_bytes()
    runtime = imported("executorch.runtime")
    program = runtime.Runtime.get().load_program(
        data, verification=runtime.Verification.InternalConsistency
    )
    assert program.metadata("forward").num_inputs() == 1
    (delegate,) = plan_of(data).delegates
    assert delegate.id == "EthosUBackend"
    assert NAME.encode() in data
