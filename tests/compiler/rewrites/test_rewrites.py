"""Rewritten networks against the networks as they were, by TensorFlow Lite Micro's own kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.artifact.steps import read_network
from mizzen.compiler.proof.stimuli import stimuli as stimuli_of
from mizzen.compiler.proof.stimuli import stimulus
from mizzen.compiler.rewrites import Rewritten, candidates, rewritten
from mizzen.conformance.cases import cases
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer.tflite import ActivationFunctionType, Padding
from mizzen.frontends.tflite import Model
from mizzen.package.tflite.builder import NetworkBuilder

INFERENCES = 5

Array = npt.NDArray[np.int8]


@dataclass
class Net:
    """A random quantised network, operator by operator; every choice is drawn of `seed`."""

    seed: int
    builder: NetworkBuilder = field(default_factory=lambda: NetworkBuilder("random"))

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.count = 0
        self.scales: dict[int, float] = {}

    def map(self, shape: tuple[int, ...], like: tuple[float, int] | None = None) -> int:
        scale, zero = like or (self.rng.uniform(0.02, 0.2), int(self.rng.integers(-40, 41)))
        self.count += 1
        made = self.builder.tensor(f"map{self.count}", shape, np.int8, scale, zero)
        self.scales[made] = scale
        return made

    def constant(self, values: npt.NDArray[np.generic], scale: npt.ArrayLike, axis: int = 0) -> int:
        self.count += 1
        scales = np.atleast_1d(np.asarray(scale, np.float64)).tolist()
        zeros = [0] * len(scales)
        return self.builder.constant(f"constant{self.count}", values, scales, zeros, axis=axis)

    def numbers(self, *values: int) -> int:
        self.count += 1
        return self.builder.constant(f"numbers{self.count}", np.asarray(values, np.int32))

    def convolution(
        self, data: int, shape: tuple[int, int, int, int], channels: int, *,
        kernel: tuple[int, int], stride: tuple[int, int], same: bool, depthwise: bool = False,
        result: tuple[float, int] | None = None, dead: tuple[int, ...] = (), offset: int = 0,
        activation: int | None = None,
    ) -> tuple[int, tuple[int, int, int, int]]:  # fmt: skip
        """Add a convolution; returns its result and the shape. Scales are per channel or not.

        dead    output channels of zero weights, which give `offset` more than the zero point
        """
        _, height, width, inputs = shape
        high, wide = (
            -(-extent // step) if same else (extent - window) // step + 1
            for extent, window, step in zip((height, width), kernel, stride, strict=True)
        )
        size = (1, *kernel, channels) if depthwise else (channels, *kernel, inputs)
        weights = self.rng.integers(-127, 128, size).astype(np.int8)
        many = bool(self.rng.integers(2))
        terms = kernel[0] * kernel[1] * (1 if depthwise else inputs)
        wanted = (result or (0.1, 0))[0] / self.scales[data] / 73 / 2 / terms**0.5
        scales = self.rng.uniform(0.7, 1.4, channels if many else 1) * wanted
        bias = self.rng.integers(-90, 90, channels).astype(np.int32)
        if dead:
            weights[(..., list(dead)) if depthwise else list(dead)] = 0
            steps = np.broadcast_to(scales, channels) * self.scales[data] / (result or (0.1, 0))[0]
            bias[list(dead)] = np.rint(offset / steps[list(dead)]).astype(np.int32)
        given = [
            data,
            self.constant(weights, scales, 3 if depthwise else 0),
            self.constant(bias, scales * self.scales[data]),
        ]
        kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        options = {
            "padding": int(Padding.SAME if same else Padding.VALID),
            "stride_h": stride[0],
            "stride_w": stride[1],
            "fused_activation_function": int(self.rng.choice([0, 1, 3]))
            if activation is None
            else activation,
            "dilation_h_factor": 1,
            "dilation_w_factor": 1,
        }
        if depthwise:
            options["depth_multiplier"] = channels // inputs
        table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        made = self.map((1, high, wide, channels), result or (0.1, int(self.rng.integers(-40, 41))))
        self.builder.operator(kind, given, [made], (table, options), version=3)
        return made, (1, high, wide, channels)

    def add(self, one: int, other: int, shape: tuple[int, ...]) -> int:
        made = self.map(shape)
        self.builder.operator("ADD", [one, other], [made], ("AddOptions", {}), version=2)
        return made

    def pad(self, data: int, shape: tuple[int, ...], more: int, like: tuple[float, int]) -> int:
        made = self.map((*shape[:3], shape[3] + more), like)
        self.count += 1
        amounts = np.asarray([[0, 0], [0, 0], [0, 0], [0, more]], np.int32)
        rows = self.builder.constant(f"amounts{self.count}", amounts)
        self.builder.operator("PAD", [data, rows], [made], ("PadOptions", {}), version=2)
        return made

    def pool(
        self, data: int, shape: tuple[int, int, int, int], like: tuple[float, int] = (0.1, 3)
    ) -> int:
        made = self.map((1, 1, 1, shape[3]), like)
        options = {
            "padding": int(Padding.VALID), "stride_w": 1, "stride_h": 1,
            "filter_width": shape[2], "filter_height": shape[1],
            "fused_activation_function": int(ActivationFunctionType.NONE),
        }  # fmt: skip
        self.builder.operator(
            "AVERAGE_POOL_2D", [data], [made], ("Pool2DOptions", options), version=2
        )
        return made

    def dense(self, data: int, size: int, outputs: int) -> int:
        flat = self.map((1, size), (0.1, 3))
        shape = self.numbers(1, size)
        self.builder.operator("RESHAPE", [data, shape], [flat], ("ReshapeOptions", {}))
        weights = self.rng.integers(-127, 128, (outputs, size)).astype(np.int8)
        bias = self.constant(np.zeros(outputs, np.int32), 0.1 * 0.003)
        made = self.map((1, outputs), (0.1 * 0.003 * 7 * size**0.5, 3))
        given = [flat, self.constant(weights, 0.003), bias]
        self.builder.operator(
            "FULLY_CONNECTED", given, [made], ("FullyConnectedOptions", {}), version=4
        )
        return made

    def finish(self, inputs: list[int], outputs: list[int]) -> Model:
        return read_network(self.builder.finish(inputs, outputs), f"random{self.seed}.tflite")


def outputs_of(data: bytes, arrays: list[Array]) -> list[Array]:
    return CpuKernels(data).run(arrays)


def file_of(model: Model) -> bytes:
    from mizzen.flatbuffer import write
    from mizzen.flatbuffer.tflite import SCHEMA

    return write(model.record, SCHEMA)


def stimuli(model: Model, seed: int = 7) -> list[Array]:
    """Return inputs, from values close to zero to such that saturate."""
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for row in model.main.present(model.main.inputs):
        widths = np.exp2(np.arange(2, 2 + INFERENCES)).reshape(-1, *(1 for _ in row.shape))
        values = rng.normal(0, widths, (INFERENCES, *row.shape))
        found.append(np.clip(values, -128, 127).astype(np.int8))
    return found


def tells(arrays: list[Array]) -> bool:
    """Whether outputs are not the same wherever one looks."""
    return any(np.unique(row).size > 3 for row in arrays)


def require_same(model: Model, names: tuple[str, ...]) -> Rewritten:
    """Rewrite, check what must stay, and compare every number of every output."""
    data = file_of(model)
    found = rewritten(model, data, names)
    main, other = model.main, found.model.main
    for before, after in ((main.inputs, other.inputs), (main.outputs, other.outputs)):
        ours = [main.tensors[index] for index in before]
        theirs = [other.tensors[index] for index in after]
        assert [(row.name, row.shape, row.type, row.quantization) for row in ours] == [
            (row.name, row.shape, row.type, row.quantization) for row in theirs
        ]
    assert len(found.sources) == len(other.operators)
    assert all(0 <= index < len(main.operators) for index in found.sources)
    arrays = stimuli(model)
    expected, got = outputs_of(data, arrays), outputs_of(found.data, arrays)
    assert tells(expected)
    for one, two in zip(expected, got, strict=True):
        assert one.shape == two.shape
        assert np.array_equal(one, two)
    return found


def chain(seed: int, count: int = 3) -> Model:
    """Make convolutions, plain and depthwise, one after the other."""
    net = Net(seed)
    rng = net.rng
    shape = (1, int(rng.integers(5, 11)), 4 * int(rng.integers(2, 7)), int(rng.integers(1, 4)))
    first = data = net.map(shape)
    for _ in range(count):
        depthwise = bool(rng.integers(2))
        multiplier = int(rng.integers(1, 4))
        channels = shape[3] * multiplier if depthwise else int(rng.integers(1, 9))
        kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 6)))
        step = int(rng.integers(1, 3))
        data, shape = net.convolution(
            data, shape, channels, kernel=kernel, stride=(step, step),
            same=bool(rng.integers(2)) or min(shape[1:3]) < 6, depthwise=depthwise,
        )  # fmt: skip
    return net.finish([first], [data])


FOLDS = (
    "fold2x1",
    "fold4x2",
    "fold2x2",
    "fold4x4",
    "fold8x4",
    "fold2x2x2",
    "fold4x2x2",
    "fold2x2x3",
)


def allowed(model: Model, *names: str) -> bool:
    with suppress(MizzenError):
        rewritten(model, file_of(model), names)
        return True
    return False


def test_folded_convolutions_are_the_same() -> None:
    done: dict[str, int] = {}
    for seed in range(45):
        model = chain(seed)
        if not tells(outputs_of(file_of(model), stimuli(model))):
            continue
        for name in FOLDS:
            if allowed(model, name):
                require_same(model, (name,))
                done[name] = done.get(name, 0) + 1
    assert set(done) == set(FOLDS)
    assert sum(done.values()) > 40


@pytest.mark.parametrize("seed", range(3))
def test_a_residual_addition_is_folded_with_its_convolutions(seed: int) -> None:
    net = Net(seed)
    shape = (1, 6, 8, 2)
    first = net.map(shape)
    one, made = net.convolution(first, shape, 4, kernel=(3, 3), stride=(1, 1), same=True)
    two, _ = net.convolution(one, made, 4, kernel=(3, 3), stride=(1, 1), same=True, depthwise=True)
    total = net.add(one, two, made)
    last, _ = net.convolution(total, made, 3, kernel=(1, 1), stride=(1, 1), same=True)
    model = net.finish([first], [last])
    for name in ("fold2x2x3", "fold4x4x3", "fold2x2x2", "fold2x2x4"):
        require_same(model, (name,))


@pytest.mark.parametrize("seed", range(12))
def test_swapped_height_and_width_are_the_same(seed: int) -> None:
    net = Net(seed)
    shape = (1, 9, 4 + seed % 3, 2)
    first = net.map(shape)
    data, made = net.convolution(
        first, shape, 6, kernel=(4, 2), stride=(1 + seed % 2, 1), same=seed % 3 > 0
    )
    data, made = net.convolution(
        data, made, 6, kernel=(3, 1), stride=(1, 1), same=True, depthwise=True, result=(0.1, 3)
    )
    if seed % 4 == 0:
        data = net.pool(data, made)
        last = net.dense(data, made[3], 5)
    else:
        last = net.dense(data, int(np.prod(made)), 5)
    model = net.finish([first], [last])
    require_same(model, ("swap",))


def test_swapping_after_folding_is_the_same() -> None:
    net = Net(5)
    shape = (1, 9, 4, 1)
    first = net.map(shape)
    data, made = net.convolution(first, shape, 6, kernel=(4, 4), stride=(2, 2), same=True)
    last = net.dense(data, int(np.prod(made)), 5)
    found = require_same(net.finish([first], [last]), ("fold2x1", "swap"))
    kinds = [row.kind for row in found.model.main.operators]
    assert kinds == ["RESHAPE", "TRANSPOSE", "CONV_2D", "RESHAPE", "FULLY_CONNECTED"]
    assert found.sources == (0, 0, 0, 1, 2)


def test_a_map_that_leaves_the_network_is_not_swapped() -> None:
    assert not allowed(chain(3), "swap")


@pytest.mark.parametrize("columns", [2, 4])
def test_a_pool_over_another_view_is_the_same(columns: int) -> None:
    net = Net(1)
    shape = (1, 7, 5, 8)
    first = net.map(shape, (0.1, 3))
    pooled = net.pool(first, shape)
    last = net.dense(pooled, 8, 4)
    require_same(net.finish([first], [last]), (f"pool{columns}",))


def test_a_pool_whose_channels_do_not_divide_keeps_its_view() -> None:
    net = Net(1)
    first = net.map((1, 7, 5, 6), (0.1, 3))
    assert not allowed(net.finish([first], [net.pool(first, (1, 7, 5, 6))]), "pool4")


@pytest.mark.parametrize("seed", range(6))
def test_padded_channels_as_rows_of_zero_weights_are_the_same(seed: int) -> None:
    """A PAD behind a convolution that others take too, into an addition, into another PAD."""
    net = Net(seed)
    shape = (1, 6, 6, 3)
    first = net.map(shape)
    scale = (0.05, int(net.rng.integers(-20, 20)))
    narrow, made = net.convolution(
        first, shape, 4, kernel=(3, 3), stride=(1, 1), same=True, result=scale
    )
    wide, more = net.convolution(narrow, made, 7, kernel=(1, 1), stride=(1, 1), same=True)
    padded = net.pad(narrow, made, 3, scale)
    total = net.add(padded, wide, more)
    last, end = net.convolution(total, more, 5, kernel=(1, 1), stride=(1, 1), same=True)
    last, _ = net.convolution(last, end, 5, kernel=(3, 3), stride=(1, 1), same=True, depthwise=True)
    found = require_same(net.finish([first], [last]), ("pads",))
    assert "PAD" not in {row.kind for row in found.model.main.operators}


def channels_of(model: Model) -> list[int]:
    return [row.shape[-1] for row in model.main.tensors if row.data is None and len(row.shape) == 4]


@pytest.mark.parametrize("seed", range(8))
def test_channels_that_are_constant_leave_with_what_is_made_of_them(seed: int) -> None:
    """Zero weights with a bias: a constant that a depthwise, a pool and a flattening pass on."""
    net = Net(seed)
    shape = (1, 3, 3, 3)
    first = net.map(shape)
    data, made = net.convolution(
        first, shape, 7, kernel=(3, 3), stride=(1, 1), same=True, dead=(1, 4, 6), offset=seed,
        activation=0,
    )  # fmt: skip
    data, made = net.convolution(
        data, made, 6, kernel=(1, 1), stride=(1, 1), same=True, dead=(0, 2), activation=0
    )
    data, made = net.convolution(
        data, made, 6, kernel=(3, 3), stride=(1, 1), same=True, depthwise=True, result=(0.1, 3),
        activation=0,
    )  # fmt: skip
    last = net.dense(net.pool(data, made), made[3], 5)
    found = require_same(net.finish([first], [last]), ("prune",))
    assert channels_of(found.model) == [3, 4, 4, 4, 4]


@pytest.mark.parametrize(("offset", "left"), [(0, 3), (9, 5)])
def test_a_constant_in_front_of_a_padded_window_must_be_the_zero_point(
    offset: int, left: int
) -> None:
    net = Net(3)
    shape = (1, 6, 6, 3)
    first = net.map(shape)
    data, made = net.convolution(
        first, shape, 5, kernel=(3, 3), stride=(1, 1), same=True, dead=(0, 3), offset=offset,
        activation=0,
    )  # fmt: skip
    last, _ = net.convolution(data, made, 4, kernel=(3, 3), stride=(1, 1), same=True)
    model = net.finish([first], [last])
    if left < 5:
        found = require_same(model, ("prune",))
        assert channels_of(found.model) == [3, left, 4]
    else:
        assert not allowed(model, "prune")


@pytest.mark.parametrize("seed", range(4))
def test_channels_in_another_order_are_the_same(seed: int) -> None:
    net = Net(seed)
    shape = (1, 4, 4, 3)
    first = net.map(shape)
    data, made = net.convolution(first, shape, 7, kernel=(3, 3), stride=(1, 1), same=True)
    data, made = net.convolution(
        data, made, 7, kernel=(3, 3), stride=(1, 1), same=True, depthwise=True, result=(0.1, 3)
    )
    data, made = net.convolution(
        net.pool(data, made), (1, 1, 1, 7), 6, kernel=(1, 1), stride=(1, 1), same=True,
        result=(0.1, 3),
    )  # fmt: skip
    model = net.finish([first], [net.dense(data, made[3], 5)])
    found = require_same(model, ("sort",))
    before, after = (
        row.main.tensors[row.main.operators[0].inputs[1]].values for row in (model, found.model)
    )
    assert before is not None
    assert after is not None
    assert not np.array_equal(before, after)


def test_channels_that_nothing_weighs_leave() -> None:
    net = Net(4)
    shape = (1, 5, 5, 3)
    first = net.map(shape)
    data, made = net.convolution(first, shape, 6, kernel=(3, 3), stride=(1, 1), same=True)
    last, _ = net.convolution(data, made, 4, kernel=(1, 1), stride=(1, 1), same=True)
    model = net.finish([first], [last])
    weights = model.main.tensors[model.main.operators[1].inputs[1]]
    assert weights.values is not None
    columns = weights.values.copy()
    columns[..., [2, 5]] = 0
    model.record["buffers"][model.record["subgraphs"][0]["tensors"][weights.index]["buffer"]][
        "data"
    ] = columns.reshape(-1).view(np.uint8)
    found = require_same(read_network(file_of(model), "unused.tflite"), ("prune",))
    assert channels_of(found.model) == [3, 4, 4]


def test_an_activation_that_cuts_everything_off_makes_a_constant() -> None:
    net = Net(6)
    shape = (1, 5, 5, 2)
    first = net.map(shape)
    data, made = net.convolution(
        first, shape, 4, kernel=(1, 1), stride=(1, 1), same=True, dead=(2,), offset=-50,
        activation=1,
    )  # fmt: skip
    last, _ = net.convolution(data, made, 4, kernel=(3, 3), stride=(1, 1), same=True)
    found = require_same(net.finish([first], [last]), ("prune",))
    assert channels_of(found.model) == [2, 3, 4]


def test_channels_that_are_added_or_leave_the_network_stay() -> None:
    net = Net(2)
    shape = (1, 5, 5, 3)
    first = net.map(shape)
    one, made = net.convolution(first, shape, 4, kernel=(1, 1), stride=(1, 1), same=True, dead=(0,))
    two, _ = net.convolution(first, shape, 4, kernel=(1, 1), stride=(1, 1), same=True, dead=(0,))
    assert not allowed(net.finish([first], [net.add(one, two, made)]), "prune")


@pytest.mark.parametrize("seed", range(4))
def test_windows_behind_a_pad_are_folded(seed: int) -> None:
    """A PAD of one row and column before the map, as some converters write a stride of two."""
    net = Net(seed)
    first = net.map((1, 8, 8, 2), (0.1, 3))
    padded = net.map((1, 9, 9, 2), (0.1, 3))
    amounts = np.asarray([[0, 0], [1, 0], [1, 0], [0, 0]], np.int32)
    rows = net.builder.constant("amounts", amounts)
    net.builder.operator("PAD", [first, rows], [padded], ("PadOptions", {}), version=2)
    data, made = net.convolution(padded, (1, 9, 9, 2), 4, kernel=(3, 3), stride=(2, 2), same=False)
    last, _ = net.convolution(
        data, made, 4, kernel=(3, 3), stride=(1, 1), same=True, depthwise=True
    )
    model = net.finish([first], [last])
    assert not allowed(model, "same")
    for name in ("fold2x1", "fold4x2", "fold4x2x2", "fold2x2x2"):
        require_same(model, (name,))


def test_a_pad_that_is_the_window_s_own_leaves() -> None:
    net = Net(9)
    first = net.map((1, 8, 8, 2), (0.1, 3))
    padded = net.map((1, 9, 9, 2), (0.1, 3))
    amounts = np.asarray([[0, 0], [0, 1], [0, 1], [0, 0]], np.int32)
    rows = net.builder.constant("amounts", amounts)
    net.builder.operator("PAD", [first, rows], [padded], ("PadOptions", {}), version=2)
    last, _ = net.convolution(padded, (1, 9, 9, 2), 4, kernel=(3, 3), stride=(2, 2), same=False)
    found = require_same(net.finish([first], [last]), ("same",))
    assert [row.kind for row in found.model.main.operators] == ["CONV_2D"]


def test_a_pad_of_the_network_s_input_stays() -> None:
    net = Net(1)
    first = net.map((1, 4, 4, 3), (0.1, 3))
    padded = net.pad(first, (1, 4, 4, 3), 2, (0.1, 3))
    last, _ = net.convolution(padded, (1, 4, 4, 5), 4, kernel=(1, 1), stride=(1, 1), same=True)
    assert not allowed(net.finish([first], [last]), "pads")


def test_rewrites_of_networks_of_one_operator_are_the_same() -> None:
    """Networks of the conformance suite, which nobody made with rewrites in mind."""
    done: set[str] = set()
    for case in cases():
        data = case.build()
        model = read_network(data, f"{case.name}.tflite")
        names = [name for group in candidates(model) for ladder in group for name in ladder]
        given = [
            stimulus(row.shape, row.dtype or np.int8)
            for row in model.main.present(model.main.inputs)
        ]
        arrays = stimuli_of(given, INFERENCES, 3)
        for name in names:
            before, after = (
                outputs_of(data, arrays),
                outputs_of(rewritten(model, data, (name,)).data, arrays),
            )
            for one, two in zip(before, after, strict=True):
                assert np.array_equal(one, two), f"{case.name} {name}"
            done.add(name)
    assert {"fold2x2", "fold2x1", "fold4x2"} <= done


def test_a_map_of_one_row_that_leaves_the_network_is_not_swapped() -> None:
    (case,) = [row for row in cases() if row.name.startswith("average_pool_2d_1x30x3x2_k30x1")
               and row.dtype == "int8"]  # fmt: skip
    assert not allowed(read_network(case.build(), "row.tflite"), "swap")


def read(file: Path) -> Model:
    return read_network(file.read_bytes(), file.name)


@pytest.mark.parametrize("file", ["kws_ref_model.tflite", "micro_speech_quantized.tflite"])
def test_every_rewrite_that_a_real_network_allows_is_the_same(
    file: str, model_file: Callable[[str], Path]
) -> None:
    model = read(model_file(file))
    groups = candidates(model)
    assert groups
    for group in groups:
        for ladder in group:
            require_same(model, (ladder[-1],))


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("kws_ref_model.tflite", ("fold2x1", "swap", "pool8")),
        ("vww4_128_128_INT8.tflite", ("pads", "fold4x2x5", "pool2")),
        ("vww_96_int8.tflite", ("prune", "sort", "fold4x2x2")),
    ],
)
def test_rewrites_one_after_the_other_are_the_same(
    file: str, names: tuple[str, ...], model_file: Callable[[str], Path]
) -> None:
    require_same(read(model_file(file)), names)


def test_what_is_no_rewrite_is_refused() -> None:
    with pytest.raises(MizzenError) as caught:
        rewritten(chain(1), b"", ("flip",))
    assert caught.value.diagnostic.render() == (
        "error[E261]: a rewrite must be of prune, sort, same, pads, foldIxO, foldIxOxN, swap, "
        "poolK, not 'flip'\n"
        "  help `mizzen tune` finds those that a network gains by"
    )


def test_a_rewrite_that_does_not_fit_says_what_it_needs() -> None:
    with pytest.raises(MizzenError) as caught:
        rewritten(chain(1), b"", ("pool2",))
    assert caught.value.diagnostic.render() == (
        "error[E267]: the rewrite pool2 must fit the network, and does not: an average pool over a "
        "whole map must have channels that the number of columns divides\n"
        "  at   random1.tflite\n"
        "  help `mizzen tune` finds those that a network gains by"
    )
