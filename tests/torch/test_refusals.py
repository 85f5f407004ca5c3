"""What cannot be compiled is refused with the line of the user's program, and what to do."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
from mizzen.torch import compile, compile_converted

U55 = "ethos-u55-128"
IMAGE = (1, 3, 8, 8)


class _Net(nn.Module):
    """A convolution, for subclasses to add to."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x))


class _Branches(_Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        if y.sum() > 0:  # here
            return y + 1
        return y


class _Repeats(_Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = int(x.max().item())  # here
        return self.conv(x).repeat(count, 1, 1, 1)


class _Selects(_Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y[y > 0]  # here


class _Halves(_Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x.half().float())  # here


def _line(module: type[nn.Module]) -> str:
    """Return file and line of what a module marks."""
    lines, first = inspect.getsourcelines(module)
    (index,) = [number for number, line in enumerate(lines) if "# here" in line]
    return f"test_refusals.py:{first + index}"


def _refused(action: Callable[[], Any]) -> Diagnostic:
    with pytest.raises(MizzenError) as caught:
        action()
    return caught.value.diagnostic


def _source(found: Diagnostic) -> str | None:
    return found.origin.source if found.origin is not None else None


@pytest.mark.parametrize("kind", [_Branches, _Repeats])
def test_control_flow_that_depends_on_data_is_refused_at_its_line(kind: type[nn.Module]) -> None:
    found = _refused(lambda: compile(kind().eval(), (torch.randn(IMAGE),), U55))
    assert found.code == "E163"
    assert "data-dependent expression" in found.message
    assert _source(found) == _line(kind)
    assert found.help == (
        "where a branch or a shape depends on the data, compute both ways and choose with "
        "torch.where, or split the model there"
    )


def test_a_shape_that_depends_on_data_is_refused_at_its_line() -> None:
    found = _refused(lambda: compile(_Selects().eval(), (torch.randn(IMAGE),), U55))
    assert found.code == "E160"
    assert found.message == "every shape must be static, and this one is (u0,)"
    assert _source(found) == _line(_Selects)
    assert found.help == (
        "its size depends on the data: keep all elements and choose with torch.where, or split "
        "the model there"
    )


def test_a_dynamic_shape_is_refused_with_the_input_that_has_it() -> None:
    image, dims = torch.randn(2, 3, 8, 8), ({0: torch.export.Dim("n", min=2, max=8)},)
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    exported = torch.export.export(_Net().eval(), (image,), dynamic_shapes=dims)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(image)
    dynamic = ({0: torch.export.Dim.AUTO},)
    again = torch.export.export(convert_pt2e(prepared), (image,), dynamic_shapes=dynamic)
    found = _refused(lambda: compile_converted(again, U55))
    assert found.code == "E160"
    assert found.origin is not None
    assert found.origin.name == "x"
    assert found.help == (
        "export without `dynamic_shapes`; for several shapes, compile one artifact for each"
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_model_of_another_type_is_refused_with_what_to_do(dtype: torch.dtype) -> None:
    image = torch.randn(IMAGE).to(dtype)
    found = _refused(lambda: compile(_Net().to(dtype).eval(), (image,), U55))
    name = str(dtype).removeprefix("torch.")
    assert found.code == "E874"
    assert found.message == (
        f"a network must compute in float32 before it is quantized, and {name} came"
    )
    assert (_source(found) or "").startswith("test_refusals.py:")
    assert found.help == (
        "call model.float() on the module, and export it again with float32 inputs"
    )


def test_half_precision_inside_of_a_model_is_refused_at_its_line() -> None:
    found = _refused(lambda: compile(_Halves().eval(), (torch.randn(IMAGE),), U55))
    assert found.code == "E874"
    assert _source(found) == _line(_Halves)


def test_a_model_that_was_not_calibrated_is_refused_at_a_line_of_it() -> None:
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    exported = torch.export.export(_Net().eval(), (torch.randn(IMAGE),))
    prepared = prepare_pt2e(exported.module(), quantizer)
    found = _refused(lambda: convert_pt2e(prepared))
    assert found.code == "E870"
    assert (_source(found) or "").startswith("test_refusals.py:")
    assert found.help == ("call the prepared model on representative inputs before convert_pt2e")


ASKED = {
    "compile": "import mizzen.torch; mizzen.torch.compile(None, (), 'ethos-u55-128')",
    "quantizer": "from mizzen.torch import EthosUQuantizer",
    "quantize": "from mizzen.quantize import get_symmetric_quantization_config",
    "command": "from mizzen.cli.main import main; sys.exit(main(['compile', 'net.pt2']))",
}


@pytest.mark.parametrize("missing", ["torch", "torchao"])
@pytest.mark.parametrize("name", ASKED)
def test_a_missing_extra_is_said_with_how_to_install_it(
    name: str, missing: str, tmp_path: Any
) -> None:
    """In a process where the package cannot be imported: Python takes None for that."""
    (tmp_path / "net.pt2").write_bytes(b"PK")
    program = f"import sys; sys.modules[{missing!r}] = None; {ASKED[name]}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"error[E165]: {missing} must be installed for PyTorch networks" in done.stderr
    assert "pip install '.[torch]'" in done.stderr
