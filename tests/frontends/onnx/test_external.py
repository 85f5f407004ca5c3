"""Weights in files beside a network: read from its folder, and nothing else is opened."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx.external import MOST_BYTES
from mizzen.frontends.onnx.reading import read

from .networks import FLOAT, network, node, onnx, tensor

WEIGHTS = np.arange(6, dtype=np.float32)
OPENED: list[str] = []
LISTENS: list[bool] = []


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and LISTENS and not isinstance(arguments[0], int):
        OPENED.append(str(arguments[0]))


sys.addaudithook(_listen)


def with_weights(dims: list[int] | None = None, **entries: Any) -> bytes:
    model = network([node("Add", ["x", "w"], ["y"])], [tensor("x", [6])], [tensor("y", [6])])
    weights = onnx.TensorProto(name="w", dims=dims or [6], data_type=FLOAT, data_location=1)
    for key, value in entries.items():
        weights.external_data.append(onnx.StringStringEntryProto(key=key, value=str(value)))
    model.graph.initializer.append(weights)
    return model.SerializeToString()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with weights, and others and secrets outside of it."""
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "w.bin").write_bytes(b"0123" + WEIGHTS.tobytes())
    (inside / "sub" / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "w.bin").write_bytes(WEIGHTS.tobytes())
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "within").symlink_to(inside / "w.bin")
    (inside / "linked").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(inside / "pipe")
    return inside


def test_weights_are_read(folder: Path) -> None:
    places: tuple[dict[str, Any], ...] = (
        {"location": "w.bin", "offset": 4, "length": 24},
        {"location": "w.bin", "offset": 4},
        {"location": "sub/w.bin"},
        {"location": "./sub\\w.bin"},
        {"location": "sub/w.bin", "checksum": "0"},
    )
    for entries in places:
        model = read(with_weights(**entries), "x.onnx", folder, {})
        np.testing.assert_array_equal(model.constants["w"], WEIGHTS)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"location": "../secret"}, "must lie in the folder"),
        ({"location": "sub/../../secret"}, "must lie in the folder"),
        ({"location": "sub\\..\\..\\secret"}, "must lie in the folder"),
        ({"location": "/etc/hostname"}, "must lie in the folder"),
        ({"location": "\\\\host\\share"}, "must lie in the folder"),
        ({"location": "C:secret"}, "must lie in the folder"),
        ({"location": ""}, "must lie in the folder"),
        ({"location": "w\0.bin"}, "must lie in the folder"),
        ({}, "must lie in the folder"),
        ({"location": "link"}, "may be a link"),
        ({"location": "within"}, "may be a link"),
        ({"location": "linked/w.bin"}, "may be a link"),
        ({"location": "pipe"}, "must be a plain file"),
        ({"location": "sub"}, "must be a plain file"),
        ({"location": "none"}, "must be a file that can be read"),
        ({"location": "w.bin/x"}, "must be a file that can be read"),
        ({"location": "w.bin", "offset": 8}, "must have bytes 8 to 32"),
        ({"location": "w.bin", "offset": 1 << 40}, "must have bytes"),
        ({"location": "w.bin", "offset": -4}, "must be a count of bytes"),
        ({"location": "w.bin", "offset": "4x"}, "must be a count of bytes"),
        ({"location": "w.bin", "offset": "9" * 400}, "must be a count of bytes"),
        ({"location": "w.bin", "length": 20}, "must hold the 24 bytes"),
        ({"location": "w.bin", "length": 1 << 40}, "must hold the 24 bytes"),
    ],
)
def test_nothing_outside_is_opened(folder: Path, entries: dict[str, Any], said: str) -> None:
    data = with_weights(**entries)
    OPENED.clear()
    LISTENS.append(True)
    try:
        with pytest.raises(MizzenError) as caught:
            read(data, "x.onnx", folder, {})
    finally:
        LISTENS.clear()
    assert caught.value.diagnostic.code == "E191"
    assert said in caught.value.diagnostic.message
    allowed = {str(folder), "sub", "w.bin"}
    outside = [
        path for path in OPENED if path not in allowed and not path.endswith((".py", ".pyc"))
    ]
    assert not outside


def test_a_network_that_came_as_bytes_has_nothing_beside_it() -> None:
    with pytest.raises(MizzenError) as caught:
        read(with_weights(location="w.bin"), "x.onnx", None, {})
    assert caught.value.diagnostic.code == "E191"
    assert caught.value.diagnostic.help is not None
    assert "path" in caught.value.diagnostic.help


def test_all_weights_together_are_bounded(folder: Path) -> None:
    big = folder / "big"
    with big.open("wb") as file:
        file.truncate(MOST_BYTES + 8)
    data = with_weights([MOST_BYTES // 4 + 1], location="big")
    with pytest.raises(MizzenError) as caught:
        read(data, "x.onnx", folder, {})
    assert caught.value.diagnostic.code == "E192"
