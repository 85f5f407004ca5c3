"""The verb `diff`: exit status, JSON, what is wrong with a command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mizzen
from mizzen.package.tflite.builder import NetworkBuilder

from .conftest import Run


def network(folder: Path, name: str, bias: int, scale: float = 0.5) -> Path:
    """Write a dense layer, compiled."""
    import numpy as np

    net = NetworkBuilder(name)
    x = net.tensor("x", (1, 16), "int8", 0.5)
    weights = net.constant("weights", np.ones((8, 16), np.int8), [0.25])
    biases = net.constant("bias", np.full(8, bias, np.int32), [0.125])
    y = net.tensor("y", (1, 8), "int8", scale)
    net.operator("FULLY_CONNECTED", [x, weights, biases], [y])
    path = folder / f"{name}.tflite"
    mizzen.compile(net.finish([x], [y]), "ethos-u55-128", prove="off").save(path)
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    return (
        network(folder, "old", 3),
        network(folder, "new", 1000),
        network(folder, "rescaled", 3, 0.25),
    )


def test_the_exit_status_says_whether_more_differs_than_is_allowed(
    pair: tuple[Path, Path, Path], run: Run
) -> None:
    old, new, rescaled = pair
    assert run("diff", old, old)[0] == 0
    status, _, err = run("diff", old, new)
    assert status == 1
    assert f"error[E825]: from {old} to {new} a device may be sent nothing" in err
    assert run("diff", old, new, "--allow", "constants")[0] == 0
    assert run("diff", old, rescaled, "--allow", "model")[0] == 1
    assert run("diff", old, rescaled, "--allow", "scales")[0] == 0


def test_the_document_has_what_must_be_sent(pair: tuple[Path, Path, Path], run: Run) -> None:
    old, new, _ = pair
    status, out, _ = run("diff", old, new, "--json", "--allow", "constants")
    document = json.loads(out)
    assert status == 0
    assert (document["model_only"], document["same"], document["update"]) == (
        True, False, "constants",
    )  # fmt: skip
    (part,) = [part for part in document["parts"] if part["part"] == "constants"]
    assert document["send_bytes"] == sum(end - start for start, end in part["ranges"])
    digests = [mizzen.load(path).manifest for path in (old, new)]
    assert document["manifests"] == [each and each.file_sha256 for each in digests]
    assert len(set(document["manifests"])) == 2
    assert [layer["changes"] for layer in document["layers"]] == [["weights"]]


@pytest.mark.parametrize(
    ("words", "code"),
    [(("gone.tflite",), "E110"), (("old.tflite", "--allow", "all"), "E200")],
)
def test_what_is_wrong_is_told(
    pair: tuple[Path, Path, Path], run: Run, words: tuple[str, ...], code: str
) -> None:
    status, _, err = run("diff", pair[0], *words)
    assert status == 2
    assert f"error[{code}]" in err
