from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.calibration import Activations, Method, Quantized, Scheme, quantize_file
from mizzen.diagnostics import MizzenError

from .networks import reals, saved

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::mizzen.diagnostics.MizzenWarning")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()
    path = tmp_path_factory.mktemp("exported") / "net.pt2"
    torch.export.save(torch.export.export(model, (torch.zeros(1, 2, 6, 6),)), path)
    return path


def quantised(path: Path, scheme: Scheme | None = None) -> Quantized:
    return quantize_file(path, saved(path.parent, reals(16)), scheme=scheme)


@pytest.mark.parametrize("activations", list(Activations))
def test_a_program_is_quantised(network: Path, tmp_path: Path, activations: Activations) -> None:
    result = quantised(network, Scheme(activations=activations))
    assert not result.report.floating
    precision = result.report.precision
    assert precision is not None
    least = {Activations.INT8: 25, Activations.INT16: 40}[activations]
    assert all(layer.sqnr_db is not None and layer.sqnr_db > least for layer in precision.layers)
    path = tmp_path / "quantised.pt2"
    result.save(path)
    report = mizzen.compile(path, "ethos-u55-128").report
    assert report is not None
    assert not report.on_cpu
    with pytest.raises(MizzenError, match="quantised already"):
        quantised(path)


def test_an_operator_stays_in_floating_point(network: Path) -> None:
    for name in ("conv2d", "0"):
        (kept,) = quantised(network, Scheme(keep_float=(name,))).report.floating
        assert kept.kind == "conv2d"


def test_a_program_is_cut(network: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.pt2"
    quantised(network, Scheme(cuts=("relu",))).save(path)
    given = torch.export.load(path).module()(torch.zeros(1, 2, 6, 6))
    shapes = [
        tuple(each.shape) for each in (given if isinstance(given, (list, tuple)) else [given])
    ]
    assert shapes == [(1, 4, 4, 4)]


def test_what_is_refused(network: Path) -> None:
    for scheme, said in (
        (Scheme(Method.PERCENTILE), "ranges of PyTorch networks are found by search"),
        (Scheme(keep_float=("conv",)), "none is 'conv'\n  help did you mean 'conv2d'"),
    ):
        with pytest.raises(MizzenError, match="E198") as caught:
            quantised(network, scheme)
        assert said in str(caught.value)


def test_zeros_say_nothing(network: Path) -> None:
    data = saved(network.parent, np.zeros((16, 2, 6, 6), np.float32))
    codes = [each.code for each in quantize_file(network, data).diagnostics]
    assert codes[0] == "W197"
