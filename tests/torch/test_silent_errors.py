"""What other toolchains get wrong without a word: here it is right, or refused with a reason.

1  In-place updates of a buffer are dropped:
   `test_a_state_updated_in_place_goes_on_from_call_to_call`
2  Calibration leaks into the initial state: the same test, whose first call starts from zero;
   `test_a_run_without_a_session_always_starts_from_the_initial_state`
3  Training leaves batch norms: `test_training_folds_batch_norms_before_a_global_pool`,
   `test_training_zoo.py`
4  Nothing was calibrated: `test_a_model_that_never_was_calibrated_is_refused`
5  Ranges of weights are ignored: `test_ranges_of_weights_are_kept_to`
6  Small 16-bit activations share a scale:
   `test_small_activations_of_16_bits_get_a_scale_of_their_own`
7  Nothing was quantised: `test_a_model_that_never_was_quantized_is_refused`,
   `test_a_quantizer_that_selects_nothing_is_refused`
8  Guards of `torch.export`: `test_a_module_as_export_gives_it_can_be_quantized`
9  Wrong targets and flags end the process: `test_a_target_that_there_is_not_is_refused_at_once`,
   `test_a_wrong_option_is_refused_at_once`; spaces in a path:
   `test_folders_leave_nothing_in_the_artifact`
10 Wrong modes are found late: `test_a_wrong_option_is_refused_at_once`
11 Dynamic quantisation: `test_dynamic_quantization_is_refused_at_once`
12 float64, infinity: `test_a_model_of_float64_is_refused`,
   `test_infinity_in_calibration_is_refused`
13 An input that is too large is copied before it is looked at:
   `test_an_input_of_another_size_is_refused_before_any_of_it_is_read`
14 Reasons are logged, not told: `test_what_has_no_integer_form_is_on_the_cpu_with_a_reason`,
   `test_nothing_is_printed`
15 Conversions count as operators on the CPU:
   `test_a_model_all_on_the_npu_is_reported_as_that`
16 Files of regions collide: `test_a_region_writes_over_no_other_region`
17 Paths in the artifact: `test_folders_leave_nothing_in_the_artifact`
18 A large average pool splits DS-CNN: `test_ds_cnn_is_one_region_on_u55`
19 Limits of kernels on the wrong axis: `test_kernels_are_as_large_as_the_accelerator_takes`
20 Comparisons and choices go to the CPU in silence: `test_choices.py`
21 Products of 16 bits go to the CPU in silence:
   `test_products_of_16_bits_are_on_the_cpu_of_u55_with_a_reason`
22 `argmax` must be cast: `test_indices_of_the_largest_are_int64`
23 Instance norm, control flow, dynamic batches, sorting, transforms:
   `test_instance_norm_is_on_the_npu`, `test_branches.py`,
   `test_dynamic_batches_are_refused`, `test_what_has_no_integer_form_is_on_the_cpu_with_a_reason`,
   `test_complex_numbers_are_refused_at_their_line`
24 Partial quantisation makes islands:
   `test_what_is_left_unquantized_has_the_reason_that_it_is`
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

from mizzen.diagnostics import MizzenError
from mizzen.quantize import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from mizzen.torch import (
    EthosUCompileSpec,
    EthosUPartitioner,
    compile,
    compile_converted,
    compile_for,
)

Build = Callable[..., Any]

U55 = "ethos-u55-128"
U85 = "ethos-u85-256"


class _Small(nn.Sequential):
    """A convolution and an activation."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())


class _Adds(nn.Module):
    """Adds to its state in place."""

    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(torch.sigmoid(x))
        return self.state * 0.5


class _Copies(_Adds):
    """Replaces its state by a mean of it and the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.copy_(self.state * 0.5 + x * 0.5)
        return self.state * 1.0


def _image(*, batch: int = 1) -> torch.Tensor:
    return torch.randn(batch, 3, 12, 12)


def test_every_test_that_is_named_exists() -> None:
    """So that the list above stays true."""
    assert __doc__ is not None
    named = re.findall("`(test_[a-z0-9_]+(?:[.]py)?)`", __doc__)
    files = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    assert set(named) <= globals().keys() | files
    numbers = [int(row) for row in re.findall("^([0-9]+) ", __doc__, re.MULTILINE)]
    assert numbers == list(range(1, 25))


@pytest.mark.parametrize("kind", [_Adds, _Copies])
def test_a_state_updated_in_place_goes_on_from_call_to_call(kind: type[_Adds]) -> None:
    """The first call starts from zero, whatever calibration left; the next ones go on.

    Twelve steps of a range of at most 4 are the drift allowed: one rounding of the state and one
    of the output in each of 3 calls, and as much again for calibration's clipping.
    """
    row = torch.full((1, 4), 0.8)
    artifact = compile(kind().eval(), (row,), U55, calibration=[(row,)] * 4)
    session, model = artifact.session(), kind().eval()
    found = [session.run(row.numpy()) for _ in range(3)]
    expected = [model(row).clone().numpy() for _ in range(3)]
    assert np.abs(np.array(found) - np.array(expected)).max() <= 12 * 4 / 255
    assert not np.array_equal(found[0], found[1])
    again = artifact.session()
    assert np.array_equal(again.run(row.numpy()), found[0])


def test_a_run_without_a_session_always_starts_from_the_initial_state() -> None:
    """Calls of `run` do not know of each other."""
    row = torch.full((1, 4), 0.8)
    artifact = compile(_Adds().eval(), (row,), U55, calibration=[(row,)] * 4)
    assert np.array_equal(artifact.run(row.numpy()), artifact.run(row.numpy()))


def test_a_model_that_never_was_quantized_is_refused() -> None:
    """No artifact that has everything on the CPU without a word."""
    exported = torch.export.export(_Small().eval(), (_image(),))
    with pytest.raises(MizzenError) as caught:
        compile_converted(exported, U55, name="small")
    found = caught.value.diagnostic
    assert found.code == "E167"
    assert found.message == "small must be quantised, and nothing in it is"
    assert "mizzen.torch.compile()" in (found.help or "")
    assert "`mizzen quantize MODEL.pt2 --data PATH`" in (found.help or "")


def test_a_model_that_never_was_calibrated_is_refused() -> None:
    """No scales of 1."""
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    exported = torch.export.export(_Small().eval(), (_image(),))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with pytest.raises(MizzenError) as caught:
        convert_pt2e(prepared)
    found = caught.value.diagnostic
    assert found.code == "E870"
    assert found.message == (
        "every quantized tensor must have been seen in calibration, and this one never was"
    )


def test_a_quantizer_that_selects_nothing_is_refused() -> None:
    """Without `set_global` there is nothing to do, and that is said."""
    exported = torch.export.export(_Small().eval(), (_image(),))
    with pytest.raises(MizzenError) as caught:
        prepare_pt2e(exported.module(check_guards=False), EthosUQuantizer(U55))
    assert caught.value.diagnostic.code == "E876"
    assert "set_global" in (caught.value.diagnostic.help or "")


def test_compiling_without_calibration_data_is_warned_of() -> None:
    """One example is not a calibration."""
    artifact = compile(_Small().eval(), (_image(),), U55)
    assert artifact.report is not None
    assert "W870" in [row.code for row in artifact.report.diagnostics]


@pytest.mark.parametrize(
    "make", [get_symmetric_quantization_config, get_symmetric_a16w8_quantization_config]
)
def test_ranges_of_weights_are_kept_to(make: Callable[..., Any]) -> None:
    """Limits that are given are the limits of the numbers."""
    quantizer = EthosUQuantizer(U55).set_global(make(weight_qmin=-7, weight_qmax=7))
    exported = torch.export.export(_Small().eval(), (_image(),))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(_image())
    converted = convert_pt2e(prepared)
    weights = [row for row in converted.state_dict().values() if row.dtype == torch.int8]
    assert len(weights) == 1
    assert (int(weights[0].min()), int(weights[0].max())) in {(-7, 7), (-7, 6), (-6, 7)}


def test_small_activations_of_16_bits_get_a_scale_of_their_own() -> None:
    """The least scale is no floor for tensors of a common size."""
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_a16w8_quantization_config())
    exported = torch.export.export(_Small().eval(), (_image(),))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(torch.full((1, 3, 12, 12), 0.5))
    scales = [
        node.args[1]
        for node in convert_pt2e(prepared).graph.nodes
        if str(node.target) == "quantized_decomposed.quantize_per_tensor.default"
    ]
    # The largest of the 32767 steps on one side is the largest value that came.
    assert scales[0] == pytest.approx(0.5 / 32767, rel=1e-4)


def test_dynamic_quantization_is_refused_at_once() -> None:
    """Not when scales are computed."""
    with pytest.raises(MizzenError) as caught:
        get_symmetric_quantization_config(is_dynamic=True)
    assert caught.value.diagnostic.code == "E873"
    assert caught.value.diagnostic.message == (
        "scales must be known when the network is compiled, and is_dynamic=True came"
    )


def test_a_model_of_float64_is_refused() -> None:
    """With the type that came."""
    with pytest.raises(MizzenError) as caught:
        compile(_Small().double().eval(), (_image().double(),), U55)
    assert caught.value.diagnostic.code == "E874"
    assert "must compute in float32" in caught.value.diagnostic.message
    assert "float64" in caught.value.diagnostic.message


def test_infinity_in_calibration_is_refused() -> None:
    """With how many numbers are none."""
    wrong = _image()
    wrong[0, 0, 0, 0] = float("inf")
    with pytest.raises(MizzenError) as caught:
        compile(_Small().eval(), (_image(),), U55, calibration=[(wrong,)])
    assert caught.value.diagnostic.code == "E871"
    assert caught.value.diagnostic.message == (
        "calibration must see finite values only, and 1 infinite of 432 came"
    )


def test_a_module_as_export_gives_it_can_be_quantized() -> None:
    """With the guards that PyTorch puts in."""
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(_Small().eval(), (_image(),)).module(), quantizer)
    image = _image()
    prepared(image)
    artifact = compile_converted(
        torch.export.export(convert_pt2e(prepared), (image,)), U55, prove="off"
    )
    assert artifact.report is not None
    assert not artifact.report.on_cpu


def test_running_the_program_does_not_change_the_artifact(built: Build) -> None:
    """An artifact keeps its initial state when the program it was made of changes its own."""
    network = built(_Adds(), torch.full((1, 4), 0.8))
    (row,) = network.calls[0]
    before = network.run((row,))
    network.exported.module(check_guards=False)(row)
    assert np.array_equal(network.run((row,)), before)


@pytest.mark.parametrize(
    ("shape", "dtype", "said"),
    [
        ((1, 3, 24, 24), np.float32, "must be of shape [N, 3, 12, 12]"),
        ((1, 3, 12, 6), np.float32, "must be of shape [N, 3, 12, 12]"),
        ((1, 3, 12, 12), np.int64, "must be of type float32, not int64"),
    ],
)
def test_an_input_of_another_size_is_refused_before_any_of_it_is_read(
    shape: tuple[int, ...], dtype: type, said: str
) -> None:
    """Whatever is in it; and what was computed before is computed again after."""
    artifact = compile(_Small().eval(), (_image(),), U55, calibration=[(_image(),)])
    right = _image().numpy()
    before = artifact.run(right)
    with pytest.raises(MizzenError) as caught:
        artifact.run(np.full(shape, 2**31 if dtype is np.int64 else np.nan, dtype))
    assert caught.value.diagnostic.code == "E712"
    assert said in caught.value.diagnostic.message
    assert np.array_equal(artifact.run(right), before)


def test_a_model_all_on_the_npu_is_reported_as_that() -> None:
    """What only makes integers of real numbers, or the other way round, is no operator."""
    artifact = compile(_Small().eval(), (_image(),), U55, calibration=[(_image(),)])
    assert artifact.report is not None
    assert artifact.report.on_cpu == ()
    assert [row.kind for row in artifact.report.on_npu] == ["aten.conv2d"]
    kinds = [type(step).__name__ for step in artifact.steps]
    assert kinds == ["QuantizeStep", "RegionStep", "DequantizeStep"]
    # 8 kernels of 3x3x3 for each of 12x12 places
    assert artifact.report.macs_on_npu == artifact.report.macs == 8 * 27 * 144


@pytest.mark.parametrize("target", ["ethos-u55-100", "ethos_u55_128"])
def test_a_target_that_there_is_not_is_refused_at_once(target: str) -> None:
    """With those that there are."""
    with pytest.raises(MizzenError) as caught:
        EthosUCompileSpec(target)
    assert caught.value.diagnostic.code == "E210"
    assert "must be ethos-u55-32, ethos-u55-64, ethos-u55-128" in caught.value.diagnostic.message
    assert caught.value.diagnostic.help == "did you mean ethos-u55-128?"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"memory_mode": "Nope"}, "E212", "the memory mode must be Sram_Only or Shared_Sram"),
        ({"system_config": "Nope"}, "E211", "the system configuration must be Ethos_U55_Deep"),
        ({"extra_flags": ["--bad"]}, "E224", "extra_flags must be flags of Vela's, not '--bad'"),
        ({"extra_flags": ["--optimise"]}, "E224", "--optimise must have a value"),
        ({"extra_flags": ["--verbose-all=1"]}, "E224", "--verbose-all must have no value"),
        ({"extra_flags": ["--system-config=Other"]}, "E224", "must be Ethos_U55_High_End_Embedded"),
        ({"extra_flags": ["--ignore-ops", "ADD"]}, "E224", "--ignore-ops cannot be followed here"),
        ({"extra_flags": ["--tensor-allocator=Best"]}, "E227", "LinearAlloc, Greedy or HillClimb"),
        ({"extra_flags": ["--cpu-tensor-alignment=24"]}, "E227", "at least 16 bytes, not 24"),
        ({"extra_flags": ["--arena-cache-size=big"]}, "E224", "a number of bytes, not 'big'"),
        ({"extra_flags": ["--optimise=Fast"]}, "E220", "Performance or Size, not 'Fast'"),
        ({"config_ini": "no such/file here.ini"}, "E213", "file no such/file here.ini must be"),
    ],
)
def test_a_wrong_option_is_refused_at_once(arguments: dict[str, Any], code: str, said: str) -> None:
    """Before anything is quantized or compiled, and without ending the process."""
    with pytest.raises(MizzenError) as caught:
        EthosUCompileSpec(U55, **arguments)
    assert caught.value.diagnostic.code == code
    assert said in caught.value.diagnostic.message


class _SortBetween(nn.Module):
    """Two NPU regions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 5, padding=2)
        self.second = nn.Conv2d(16, 16, 5, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.cumsum(torch.relu(self.first(x)), 3).flip(1) * 0.5)


def test_folders_leave_nothing_in_the_artifact(converted: Build, tmp_path: Path) -> None:
    """Two builds in folders with spaces give the same bytes, and no folder's name."""
    exported = converted(_Small(), [(_image(),)] * 2)
    found = []
    for name in ("one folder", "another folder"):
        spec = EthosUCompileSpec(U55).dump_intermediate_artifacts_to(tmp_path / name)
        spec.dump_debug_info(EthosUCompileSpec.DebugMode.JSON)
        found.append(compile_for(exported, EthosUPartitioner(spec)).data)
        assert (tmp_path / name / "model_0.tosa").stat().st_size > 0
        assert (tmp_path / name / "model_0_debug.json").stat().st_size > 0
    assert found[0] == found[1]
    assert b"folder" not in found[0]


def test_a_region_writes_over_no_other_region(converted: Build, tmp_path: Path) -> None:
    """Each has files of its own, and the archive has what they have."""
    inputs = [(torch.randn(1, 3, 32, 32),)] * 2

    def keep_pointwise(node: Any) -> str | None:
        return "tested on the CPU" if "cumsum" in str(node.target) else None

    exported = converted(_SortBetween(), inputs)
    spec = EthosUCompileSpec(U55).dump_intermediate_artifacts_to(tmp_path)
    artifact = compile_for(exported, EthosUPartitioner(spec, [keep_pointwise]))
    files = sorted(tmp_path.glob("*_vela.tflite"))
    assert len(files) == sum(step.on_npu for step in artifact.steps) == 2
    assert files[0].read_bytes() != files[1].read_bytes()
    (tmp_path / "all.zip").write_bytes(artifact.data)
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert sum(row.endswith(".tflite") for row in archive.namelist()) == 2


LARGE_KERNELS: dict[str, tuple[nn.Module, tuple[int, int]]] = {
    "pool (1, 300)": (nn.AvgPool2d((1, 300)), (20, 301)),
    "pool (300, 1)": (nn.AvgPool2d((300, 1)), (301, 20)),
    "pool 4": (nn.AvgPool2d(4), (41, 41)),
    "convolution (1, 65)": (nn.Conv2d(2, 3, (1, 65)), (20, 70)),
    "convolution (65, 1)": (nn.Conv2d(2, 3, (65, 1)), (70, 20)),
}


@pytest.mark.parametrize("name", LARGE_KERNELS)
def test_kernels_are_as_large_as_the_accelerator_takes(name: str, built: Build) -> None:
    """On either axis; off by at most one step, a tie."""
    module, size = LARGE_KERNELS[name]
    network = built(module, torch.randn(1, 2, *size), accelerator=U55)
    assert network.steps_off() <= 1
    assert network.on_cpu == {}


class _Product(nn.Module):
    """Multiplies two things that are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(16, 16)
        self.other = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(self.one(x), self.other(x).transpose(1, 2))


def test_products_of_16_bits_are_on_the_cpu_of_u55_with_a_reason(converted: Build) -> None:
    """And on the NPU of U85."""
    config, calls = get_symmetric_a16w8_quantization_config(), [(torch.randn(1, 8, 16),)] * 2
    on_cpu: dict[str, Any] = {}
    for target in (U55, U85):
        report = compile_converted(
            converted(_Product(), calls, target, config), target, prove="off"
        ).report
        assert report is not None
        on_cpu[target] = report.on_cpu
    assert on_cpu[U85] == ()
    (product,) = on_cpu[U55]
    assert product.kind == "aten.bmm"
    assert [row.message for row in product.reasons] == [
        "the NPU does not compute this MATMUL: its operands have 16 bits, which only Ethos-U85 "
        "multiplies: quantise it to 8"
    ]


class _Argmax(nn.Module):
    """Gives int64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.argmax(1)


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_indices_of_the_largest_are_int64(accelerator: str, built: Build) -> None:
    """No cast in the model is asked for."""
    network = built(nn.Sequential(nn.Conv2d(3, 8, 3), _Argmax()), _image(), accelerator=accelerator)
    assert network.artifact.outputs[0].dtype == np.int64
    if accelerator == U55:
        assert network.steps_off() == 0


def test_instance_norm_is_on_the_npu(built: Build) -> None:
    """As group norm is; means are rounded once, in their own scale."""
    network = built(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8)), _image(), accelerator=U55
    )
    assert network.on_cpu == {}
    assert network.npu_regions == 1
    assert network.steps_off() <= 1


class _TopK(nn.Module):
    """Sorts what a convolution gives."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).topk(3, 1)[0]


class _Fft(_TopK):
    """Transforms what a convolution gives."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(self.conv(x)).abs()


def test_what_has_no_integer_form_is_on_the_cpu_with_a_reason(built: Build) -> None:
    """The rest stays on the NPU."""
    network = built(_TopK(), torch.randn(1, 3, 32, 32), accelerator=U55)
    assert network.on_cpu == {
        "aten.topk": "there is no TOSA form of aten.topk here: TOSA sorts nothing"
    }
    assert network.npu_regions == 1


def test_complex_numbers_are_refused_at_their_line() -> None:
    """With advice for complex numbers, not for wide ones."""
    with pytest.raises(MizzenError) as caught:
        compile(_Fft().eval(), (torch.randn(1, 3, 32, 32),), U55)
    found = caught.value.diagnostic
    assert found.code == "E874"
    assert "complex64 came" in found.message
    assert found.help == (
        "no NPU has complex numbers: keep the transform out of the model, or write it as products"
    )
    assert found.origin is not None
    assert "test_silent_errors.py" in str(found.origin)


def test_dynamic_batches_are_refused() -> None:
    """Not put on the CPU without a word."""
    dynamic = {"input": {0: torch.export.Dim("n", min=2, max=8)}}
    exported = torch.export.export(_Small().eval(), (_image(batch=2),), dynamic_shapes=dynamic)
    quantizer = EthosUQuantizer(U55).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(_image(batch=2))
    again = torch.export.export(
        convert_pt2e(prepared), (_image(batch=2),), dynamic_shapes=[{0: torch.export.Dim.AUTO}]
    )
    with pytest.raises(MizzenError) as caught:
        compile_converted(again, U55)
    assert caught.value.diagnostic.code == "E160"
    assert "every shape must be static" in caught.value.diagnostic.message


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither by the compiler nor by PyTorch."""
    compile(_Small().eval(), (_image(),), U55, calibration=[(_image(),)])
    assert capfd.readouterr() == ("", "")


def test_training_folds_batch_norms_before_a_global_pool() -> None:
    """The head must not keep the fold from the body."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    quantizer = EthosUQuantizer(U55)
    quantizer.set_global(get_symmetric_quantization_config(is_qat=True))
    exported = torch.export.export(model, (_image(batch=2),))
    prepared = prepare_qat_pt2e(exported.module(check_guards=False), quantizer)
    prepared(_image(batch=2))
    left = [str(node.target) for node in convert_pt2e(prepared).graph.nodes]
    assert not [name for name in left if "batch_norm" in name]


def _zoo(name: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(repository / "examples"))
    return import_module("zoo").NETWORKS[name]


def test_ds_cnn_is_one_region_on_u55(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its large average pool."""
    entry = _zoo("ds_cnn", repository, monkeypatch)
    calls = list(entry.calibration())[:2]
    artifact = compile(entry.build(), entry.example_inputs(), U55, calibration=calls)
    assert artifact.report is not None
    assert not artifact.report.on_cpu
    assert [step.on_npu for step in artifact.steps].count(True) == 1


def test_what_is_left_unquantized_has_the_reason_that_it_is() -> None:
    """A quantizer for convolutions alone: what is between two is on the NPU too."""
    model = nn.Sequential(nn.Conv2d(3, 16, 5), nn.Sigmoid(), nn.Conv2d(16, 16, 5), nn.Tanh()).eval()
    image = torch.randn(1, 3, 32, 32)
    quantizer = EthosUQuantizer(U55)
    quantizer.set_module_type(nn.Conv2d, get_symmetric_quantization_config())
    exported = torch.export.export(model, (image,))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(image)
    artifact = compile_converted(
        torch.export.export(convert_pt2e(prepared), (image,)), U55, prove="off"
    )
    assert artifact.report is not None
    assert [row.kind for row in artifact.report.on_cpu] == ["aten.tanh"]
    assert artifact.report.on_cpu[0].reasons[0].message
    assert len(artifact.report.on_npu) == 3
