"""Models, examples and options: what cannot be meant is refused at once, by what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mizzen
from mizzen.diagnostics import MizzenError
from mizzen.torch import compile
from mizzen.torch.backend import mizzen as backend

U55 = "ethos-u55-128"
IMAGE = torch.zeros(1, 3, 8, 8)


class Two(nn.Module):
    """Takes arguments by keyword and in a dict, and gives a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)

    def forward(
        self, image: torch.Tensor, more: dict[str, torch.Tensor], *, depth: torch.Tensor | None
    ) -> dict[str, Any]:
        y = self.near(image) + self.far(more["left"]) + self.near(more["image"])
        if depth is not None:
            y = y + self.far(depth)
        return {"scores": y.mean((2, 3)), "maps": [y, torch.relu(y)], "none": None}


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()


def images(count: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    return [torch.randn(1, 3, 8, 8) for _ in range(count)]


def call(seed: int = 2) -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor]:
    torch.manual_seed(seed)
    image, left, other, depth = torch.randn(4, 1, 3, 8, 8)
    return image, {"left": left, "image": other}, depth


def refused(action: Callable[[], Any]) -> str:
    with pytest.raises(MizzenError) as caught:
        action()
    return str(caught.value)


MODELS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a state_dict": (
        lambda: net().state_dict(),
        "a dict of 2 entries",
        "make the model and load the weights into it: model.load_state_dict(...)",
    ),
    "a path": (
        lambda: Path("net.pt"),
        f"a {type(Path()).__name__}",
        "mizzen.compile takes files; torch.export.load reads a .pt2 (a converted one after `import "
        "torchao.quantization.pt2e`), and weights of a .pt or .pth are for "
        "model.load_state_dict(torch.load(...))",
    ),
    "a class": (lambda: nn.ReLU, "the class ReLU", "make one of it: ReLU()"),
    "a number": (lambda: 3, "a int", "give the model first, then its arguments"),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_no_model_is_refused(name: str) -> None:
    model, came, meant = MODELS[name]
    assert refused(lambda: compile(model(), (IMAGE,), U55)) == (
        "error[E230]: a model must be a torch.nn.Module, a function or an exported program, and "
        f"{came} came\n  help {meant}"
    )


def test_a_model_is_no_file() -> None:
    assert refused(lambda: mizzen.compile(net(), U55)) == (  # pyright: ignore[reportArgumentType] - that is the point
        "error[E230]: a network must be a file's path or its bytes, and one of type Sequential "
        "came\n"
        "  help PyTorch models are for mizzen.torch.compile(model, example_inputs, accelerator)"
    )


EXAMPLES: dict[str, tuple[Any, str]] = {
    "a shape": (
        (1, 3, 8, 8),
        "the example must have tensors, and the numbers 1, 3, 8, 8 came\n"
        "  help if that is a shape, give torch.randn(1, 3, 8, 8)",
    ),
    "nothing": (
        (),
        "the example must have the model's arguments, forward(input): missing a required "
        "argument: 'input'\n"
        "  help give a tuple of the arguments of one call, or a dict that names them",
    ),
    "other channels": (
        (torch.zeros(1, 4, 8, 8),),
        "the model must take the example's arguments, float32[1, 4, 8, 8], and it says: Given "
        "groups=1, weight of size [4, 3, 3, 3], expected input[1, 4, 8, 8] to have 3 channels, "
        "but got 4 channels instead\n"
        "  at   Sequential\n"
        "  help give arguments of the shapes and types that it was trained with, as in one call "
        "of it",
    ),
    "bytes": (
        (IMAGE.byte(),),
        "the model must take the example's arguments, uint8[1, 3, 8, 8], and it says: Input type "
        "(unsigned char) and bias type (float) should be the same\n"
        "  at   Sequential\n"
        "  help give arguments of the shapes and types that it was trained with, as in one call "
        "of it",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_that_the_model_does_not_take_is_refused(name: str) -> None:
    example, text = EXAMPLES[name]
    assert refused(lambda: compile(net(), example, U55)) == f"error[E231]: {text}"


def test_arrays_are_examples() -> None:
    """Float64 becomes the model's float32; one tensor given twice is two arguments."""
    array = images(1)[0].double().numpy()
    assert compile(net(), array, U55, prove="off").inputs[0].dtype == np.float32

    def difference(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return one - 2 * other

    image = images(1)[0]
    artifact = compile(difference, (image, image), U55, prove="off")
    assert [info.name for info in artifact.inputs] == ["one", "other"]
    found = np.asarray(artifact.run(one=image, other=np.zeros((1, 3, 8, 8), np.float32)))
    assert np.abs(found - image.numpy()).mean() < 0.05


def test_an_option_that_there_is_not_is_refused_with_what_was_meant() -> None:
    wrong: Any = {"calibrate": [IMAGE]}
    text = refused(lambda: compile(net(), (IMAGE,), U55, **wrong))
    assert text.startswith(
        "error[E229]: compile must be given options that it has, and 'calibrate' is none of them: "
        "model, example_inputs, accelerator, kwargs, calibration, "
    )
    assert text.endswith("help did you mean calibration?")
    wrong = {"memorymode": "Sram_Only"}
    for verb in (mizzen.compile, mizzen.check):
        text = refused(partial(verb, "net.tflite", U55, **wrong))
        assert "did you mean memory_mode?" in text


def test_an_accelerator_that_is_no_name_is_refused() -> None:
    swapped: Any = (IMAGE,)
    assert refused(lambda: compile(net(), U55, swapped)) == (
        "error[E210]: the accelerator must be named by a str, such as 'ethos-u55-128', and one of "
        "type tuple came\n"
        "  help the arguments of compile are model, example_inputs, accelerator, in this order"
    )


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "an option": ({"acelerator": U55}, "did you mean accelerator?"),
    "an accelerator": ({"accelerator": "ethos-u55-12"}, "did you mean ethos-u55-128?"),
    "a mode": ({"accelerator": U55, "memory_mode": "Sram_only_"}, "E21"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_first_call_of_a_compiled_model_refuses_options(name: str) -> None:
    """As the error that it is, without what PyTorch says about its backends."""
    torch.compiler.reset()
    options, text = OPTIONS[name]
    fast = torch.compile(net(), backend=backend, options=options)
    assert text in refused(lambda: fast(IMAGE))


class TestModes:
    """A model in training mode is compiled where the mode changes nothing."""

    @pytest.mark.parametrize(
        "model", [nn.ReLU(), nn.Sequential(nn.Conv2d(3, 4, 3), nn.LayerNorm(6), nn.ReLU())]
    )
    def test_taken(self, model: nn.Module) -> None:
        artifact = compile(model.train(), (images(1)[0],), U55, prove="off")
        assert model.training
        assert artifact.report is not None
        assert not artifact.report.on_cpu

    def test_refused_where_it_matters(self) -> None:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        assert refused(lambda: compile(model, (images(1)[0],), U55)) == (
            "error[E877]: the model must be in inference mode, and it is in training mode\n"
            '  at   Sequential, 1 (BatchNorm2d), operator 9 aten.add_ -> "add_"\n'
            "  help call model.eval() first; for training with quantisation, use prepare_qat_pt2e"
        )
        after = model.state_dict()
        assert all(torch.equal(value, after[name]) for name, value in before.items())

    def test_refused_where_python_asks(self) -> None:
        class Asks(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * 2 if self.training else torch.softmax(x, 1)

        text = refused(lambda: compile(Asks().train(), (images(1)[0],), U55))
        lines, first = inspect.getsourcelines(Asks)
        assert "E877" in text
        assert f"test_given.py:{first + len(lines) - 1}" in text

    def test_refused_where_only_a_part_is_in_training(self) -> None:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.5)).eval()
        model[1].train()
        assert "E877" in refused(lambda: compile(model, (images(1)[0],), U55))


class TestNames:
    """Arguments by keyword, dicts of them and dicts of results keep their names."""

    def test_from_the_model_to_files(self, tmp_path: Path) -> None:
        torch.manual_seed(0)
        model = Two().eval()
        calls = [call(seed) for seed in range(4)]
        named = [{"image": image, "more": more, "depth": depth} for image, more, depth in calls]
        image, more, depth = calls[0]
        artifact = compile(model, (image, more), U55, kwargs={"depth": depth}, calibration=named)
        takes = ["image", "left", "more_image", "depth"]
        gives = ["scores", "maps_0", "maps_1"]
        expected = model(image, more, depth=depth)
        tensors = [expected["scores"], *expected["maps"]]
        for path in (None, tmp_path / artifact.name, tmp_path / "net.pte"):
            if path is not None:
                artifact.save(path)
            loaded = artifact if path is None else mizzen.load(path)
            assert [info.name for info in loaded.inputs] == takes
            assert [info.name for info in loaded.outputs] == gives
            found = loaded.run(left=more["left"], more_image=more["image"], image=image,
                               depth=depth)  # fmt: skip
            for info, array, tensor in zip(loaded.outputs, found, tensors, strict=True):
                assert array.shape == tensor.shape, info
                scale = 1.0 if info.quantization is None else info.quantization.scale[0]
                zero = 0 if info.quantization is None else info.quantization.zero_point[0]
                real = (np.asarray(array, np.float32) - zero) * scale
                assert np.abs(real - tensor.detach().numpy()).max() < 0.2, info

    def test_arguments_in_one_dict(self) -> None:
        """A dict of the parameters' names, or the one argument that the model takes."""
        first = images(2)

        def named(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            return torch.relu(one) + other

        def mapped(batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch.relu(batch["one"]) + batch["other"]

        example = {"one": first[0], "other": first[1]}
        reversed_ = {"other": first[1], "one": first[0]}
        expected = named(*first).numpy()
        for function in (named, mapped):
            artifact = compile(function, example, U55, calibration=[example, reversed_])
            assert [info.name for info in artifact.inputs] == ["one", "other"]
            assert np.abs(np.asarray(artifact.run(reversed_)) - expected).max() < 0.1

    def test_a_calibration_item_without_an_argument_is_refused(self) -> None:
        example = {"input": images(1)[0]}
        text = refused(
            lambda: compile(net(), example, U55, calibration=[example, {"image": IMAGE}])
        )
        assert text == (
            "error[E880]: calibration's row 1 must be arguments like the example's: called input, "
            "and image came, without 'input'\n"
            "  help give tuples of the model's arguments, or dicts that name them; labels may "
            "follow, and a batch may be larger than the example's"
        )
