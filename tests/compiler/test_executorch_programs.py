"""TFLite networks saved as ExecuTorch programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mizzen

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_a_network_on_the_npu_is_one_delegate(accelerator: str, tmp_path: Path) -> None:
    artifact = mizzen.compile(DIGITS / "digits.tflite", accelerator=accelerator)
    artifact.save(tmp_path / "digits.pte")
    again = mizzen.load(tmp_path / "digits.pte")
    images = np.load(DIGITS / "images.npy")
    np.testing.assert_array_equal(again.run(images), artifact.run(images))


def test_operators_on_the_cpu_need_tflite_micro(tmp_path: Path) -> None:
    artifact = mizzen.compile(
        DIGITS / "digits.tflite", accelerator="ethos-u55-128", ignore_ops=("FULLY_CONNECTED",)
    )
    with pytest.raises(mizzen.MizzenError) as error:
        artifact.save(tmp_path / "digits.pte")
    assert error.value.diagnostic.code == "E174"
    assert "tflite::FULLY_CONNECTED has none" in error.value.diagnostic.message
    assert error.value.diagnostic.origin is not None
