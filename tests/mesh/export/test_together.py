"""Elements in C that work at the same time, their messages held back by credits alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mizzen.mesh.emission import emit
from mizzen.mesh.execution import execute
from mizzen.mesh.mapping import Mapping
from mizzen.mesh.network import Network, network_of_tflite

from .building import images_of, need
from .together import Together

IMAGES = 6


def gives_the_outputs(mapping: Mapping, folder: Path) -> None:
    need("gcc")
    program = emit(mapping)
    inputs = images_of(program.network, IMAGES)
    together = Together(program, inputs, folder)
    together.run()
    assert together.wrong == []
    expected = execute(program, inputs).outputs
    for tensor, values in zip(program.network.outputs, expected, strict=True):
        assert np.array_equal(together.outputs[tensor], values)


@pytest.mark.parametrize(
    "name", ["split_channels", "split_rows_with_halo", "split_sums", "residual"]
)
def test_networks_by_hand(
    name: str, by_hand: dict[str, Callable[[], Mapping]], tmp_path: Path
) -> None:
    gives_the_outputs(by_hand[name](), tmp_path)


def test_a_real_network(
    models: Path, split_at_random: Callable[[Network, int], Mapping], tmp_path: Path
) -> None:
    content = (models / "kws_ref_model.tflite").read_bytes()
    network = network_of_tflite(content, "kws_ref_model")
    gives_the_outputs(split_at_random(network, 3), tmp_path)
