"""Looking up, and finding, by indices of 64 bits, which NPUs have in 32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import MizzenError
from mizzen.torch import (
    EthosUQuantizer,
    compile,
    compile_converted,
    get_symmetric_quantization_config,
)

U55, U85 = "ethos-u55-128", "ethos-u85-128"

Function = Callable[["_Model", "Inputs"], Any]


Inputs = tuple[Tensor, ...]


class _Model(nn.Module):
    """A function with a table of rows and a layer at hand."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function
        self.table, self.layer = nn.Embedding(11, 6), nn.Linear(6, 5)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, inputs)


def _numbers(*shape: int) -> Tensor:
    return torch.linspace(-1, 1, int(np.prod(shape))).sin().view(shape)


def _places(*rows: Any) -> Tensor:
    return torch.tensor(rows)


def _short(*rows: Any) -> Tensor:
    return _places(*rows).to(torch.int32)


def _put(m: _Model, v: Inputs) -> Tensor:
    x, i, j, y = v[0].clone(), *v[1:]
    x[i, j] = y
    return x


def _put_apart(m: _Model, v: Inputs) -> Tensor:
    x, i, j, y = v[0].clone(), *v[1:]
    x[i, :, j] = y
    return x


def _masked(m: _Model, v: Inputs) -> Tensor:
    x, mask = v[0].clone(), *v[1:]
    x[mask] = 0.25
    return x


def _visible(m: _Model, v: Inputs) -> Tensor:
    """A cache of seven places, and a mask of those up to a position, which is also counted back."""
    x = torch.index_copy(v[0], 1, v[1], v[2])
    mask = torch.arange(7)[None, :] <= v[1][:, None]
    return torch.where(mask[..., None], x, m.table.weight[v[1]][:, None, :3])


LOOKUPS: dict[str, tuple[Function, Inputs]] = {
    "mask of a position": (_visible, (_numbers(1, 7, 3), _places(4), _numbers(1, 1, 3))),
    "index_select": (
        lambda m, v: torch.index_select(v[0], 1, v[1]),
        (_numbers(4, 7, 3), _places(1, 6, 0, 0)),
    ),
    "index from the end": (lambda m, v: v[0][v[1]], (_numbers(4, 7, 3), _places([1, -1], [0, 2]))),
    "index of 32 bits": (lambda m, v: v[0][v[1]], (_numbers(4, 7), _short(-1, 2))),
    "index_select by 32 bits": (
        lambda m, v: torch.index_select(v[0], 1, v[1]),
        (_numbers(4, 7, 3), _short(1, 6, 0, 0)),
    ),
    "index_select by what is computed": (
        lambda m, v: torch.index_select(v[0], 1, v[1] + 1),
        (_numbers(4, 7, 3), _short(1, 5, 0, 0)),
    ),
    "index of two dimensions": (
        lambda m, v: v[0][:, v[1], v[2]],
        (_numbers(4, 7, 3), _places(1, -1), _places(2, 0)),
    ),
    "gather": (
        lambda m, v: torch.gather(v[0], 1, v[1]),
        (_numbers(2, 5), _places([4, 0, 2], [1, 1, 3])),
    ),
    "index_select of truths": (
        lambda m, v: torch.index_select(v[0] > 0, 1, v[1]),
        (_numbers(4, 7), _places(1, 6, 0, 0)),
    ),
    "index_copy": (
        lambda m, v: torch.index_copy(v[0], 1, v[1], v[2]),
        (_numbers(4, 7, 3), _places(2, 5), _numbers(4, 2, 3)),
    ),
    "index_put": (_put, (_numbers(4, 7), _places(2, 0), _places(1, -1), _numbers(2))),
    "index_put apart": (
        _put_apart,
        (_numbers(4, 3, 7), _places(2, 0), _places(1, -1), _numbers(2, 3)),
    ),
    "index_put by a mask": (_masked, (_numbers(4, 7), _numbers(4, 7) > 0.1)),
    "embedding": (lambda m, v: m.layer(m.table(v[0])), (_places([1, 10, 0], [3, 3, 3]),)),
}


def _stepwise(name: str, accelerator: str) -> tuple[nn.Module, Artifact]:
    """Return the quantised model and its artifact, by the published steps."""
    torch.manual_seed(0)
    function, inputs = LOOKUPS[name]
    program = torch.export.export(_Model(function).eval(), inputs).module(check_guards=False)
    quantizer = EthosUQuantizer(accelerator).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(program, quantizer)
    prepared(*inputs)
    converted = torch.export.export(convert_pt2e(prepared), inputs)
    return converted.module(check_guards=False), compile_converted(converted, accelerator)


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("name", LOOKUPS)
def test_what_is_looked_up_is_exact(name: str, accelerator: str) -> None:
    """On the NPU of U85; U55 has no form of it, and PyTorch looks up."""
    model, artifact = _stepwise(name, accelerator)
    inputs = LOOKUPS[name][1]
    assert artifact.report is not None
    assert bool(artifact.report.on_cpu) == (accelerator == U55)
    assert np.array_equal(artifact.run(*(x.numpy() for x in inputs)), model(*inputs).numpy())


UNCHECKED: dict[str, tuple[Function, Inputs]] = {
    "of two extents": (lambda m, v: v[0][v[1], v[1]], (_numbers(4, 7), _places(-1, 2))),
    "beside a constant": (lambda m, v: v[0][v[1], [-1, -2]], (_numbers(4, 7), _places(-1, 2))),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_no_index_reaches_the_npu_unchecked(name: str) -> None:
    """It would be another row in silence: such a lookup is PyTorch's."""
    function, inputs = UNCHECKED[name]
    artifact = compile(_Model(function).eval(), inputs, U85, calibration=[inputs])
    found = artifact.run(*(x.numpy() for x in inputs))
    step = 2.0 / 255
    assert np.abs(found - function(_Model(function), inputs).numpy()).max() <= step


FOUND: dict[str, Function] = {
    "argmax": lambda m, v: torch.argmax(m.layer(v[0]), -1),
    "argmin kept": lambda m, v: torch.argmin(m.layer(v[0]), 1, keepdim=True),
    "argmax of all": lambda m, v: m.layer(v[0]).argmax(),
    "max": lambda m, v: torch.max(m.layer(v[0]), -1),
    "min": lambda m, v: torch.min(m.layer(v[0]), 1),
    "argmax as 32 bits": lambda m, v: torch.argmax(m.layer(v[0]), -1).to(torch.int32),
}


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize("name", FOUND)
def test_where_the_greatest_is_has_the_type_of_pytorchs(name: str, accelerator: str) -> None:
    torch.manual_seed(0)
    model, x = _Model(FOUND[name]).eval(), torch.randn(3, 6)
    artifact = compile(model, (x,), accelerator, calibration=[(x,)])
    assert artifact.report is not None
    assert not artifact.report.on_cpu
    wanted, given = model(x), artifact.run(x.numpy())
    index = wanted[1] if isinstance(wanted, tuple) else wanted
    found = given[1] if isinstance(given, tuple) else given
    assert found.dtype == index.numpy().dtype
    assert np.array_equal(found, index.numpy())


def test_the_first_of_several_greatest_is_found() -> None:
    model = _Model(lambda m, v: (torch.max(v[0], 1)[1], torch.min(v[0], 1)[1])).eval()
    x = torch.tensor([[0.5, 1.0, 1.0, -1.0, -1.0], [-1.0, -1.0, 0.0, 1.0, 1.0]])
    artifact = compile(model, (x,), U85, calibration=[(x,)])
    greatest, least = artifact.run(x.numpy())
    assert greatest.tolist() == [1, 3]
    assert least.tolist() == [3, 0]


@pytest.mark.parametrize("name", ["index_select", "index_select by 32 bits"])
def test_an_index_that_there_is_not_is_refused(name: str) -> None:
    _, artifact = _stepwise(name, U85)
    x, index = LOOKUPS[name][1]
    with pytest.raises(MizzenError) as caught:
        artifact.run(x.numpy(), np.array([0, 1, 7, 0], index.numpy().dtype))
    assert str(caught.value) == (
        "error[E724]: an index must be in 0 to 6, and 7 came\n"
        "  help PyTorch refuses it too: look at what computes the index"
    )


def test_an_artifact_with_indices_comes_back_from_a_file(tmp_path: Path) -> None:
    """Beside an operator that PyTorch computes, so that the host's steps are in the file."""
    model = _Model(lambda m, v: torch.sort(torch.index_select(v[0], 1, v[1]), 1)[1]).eval()
    inputs = LOOKUPS["index_select"][1]
    artifact = compile(model, inputs, U85, calibration=[inputs])
    path = tmp_path / "network.zip"
    artifact.save(path)
    arrays = [value.numpy() for value in inputs]
    assert np.array_equal(mizzen.load(path).run(*arrays), artifact.run(*arrays))
