"""What TFLite Micro has no kernel for is computed on this host by whatever has one, and it is told.

LiteRT's reference kernels, asked for the whole network, are the judge of what is not theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mizzen.cpu import CpuKernels, litert
from mizzen.cpu.host import Computer, HostKernels, NothingComputesError
from mizzen.cpu.litert import LiteRtKernels
from mizzen.cpu.tflm import KernelRefusalError
from mizzen.diagnostics import MizzenError, Origin
from mizzen.package.tflite.builder import NetworkBuilder

from .networks import chain, delay_line, unary

pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")
pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

IMAGE = (1, 5, 4, 3)
Options = tuple[str, dict[str, Any]] | None


def network(
    kind: str,
    taken: Sequence[tuple[tuple[int, ...], str]],
    made: Sequence[tuple[tuple[int, ...], str]],
    options: Options = None,
    constants: Sequence[np.ndarray[Any, Any]] = (),
    scale: float = 0.05,
) -> bytes:
    """Return a network of one operator on tensors, each a shape and a type, then constants."""
    net = NetworkBuilder()

    def add(name: str, shape: tuple[int, ...], dtype: str) -> int:
        if dtype in {"int32", "int64", "bool", "float32"}:
            return net.tensor(name, shape, dtype)
        return net.tensor(name, shape, dtype, scale, 128 if dtype == "uint8" else 0)

    inputs = [add(f"x{place}", *row) for place, row in enumerate(taken)]
    fixed = [net.constant(f"c{place}", array) for place, array in enumerate(constants)]
    outputs = [add(f"y{place}", *row) for place, row in enumerate(made)]
    net.operator(kind, [*inputs, *fixed], outputs, options)
    return net.finish(inputs, outputs)


def resize(kind: str, dtype: str, **options: bool) -> Callable[[], bytes]:
    table = "ResizeBilinearOptions" if "BILINEAR" in kind else "ResizeNearestNeighborOptions"
    size = np.array([9, 7], np.int32)
    return lambda: network(
        kind, [(IMAGE, dtype)], [((1, 9, 7, 3), dtype)], (table, options), [size]
    )


def same(kind: str, dtype: str, options: Options = None, inputs: int = 1) -> Callable[[], bytes]:
    return lambda: network(kind, [(IMAGE, dtype)] * inputs, [(IMAGE, dtype)], options)


def extreme(kind: str, dtype: str, result: str) -> Callable[[], bytes]:
    axis = np.array(3, np.int32)
    options = (
        f"Arg{kind[4:].capitalize()}Options",
        {"output_type": 4 if result == "int64" else 2},
    )
    return lambda: network(kind, [(IMAGE, dtype)], [((1, 5, 4), result)], options, [axis])


CASES: dict[str, tuple[Callable[[], bytes], Computer]] = {
    "GELU int8": (same("GELU", "int8", ("GeluOptions", {})), Computer.GRAPH),
    "GELU int8, by tanh": (
        same("GELU", "int8", ("GeluOptions", {"approximate": True})),
        Computer.GRAPH,
    ),
    "GELU uint8": (same("GELU", "uint8", ("GeluOptions", {})), Computer.GRAPH),
    "ARG_MAX to int64": (extreme("ARG_MAX", "int8", "int64"), Computer.LITERT),
    "ARG_MIN to int64": (extreme("ARG_MIN", "int8", "int64"), Computer.LITERT),
    "ARG_MAX of uint8": (extreme("ARG_MAX", "uint8", "int32"), Computer.GRAPH),
    "RESIZE_BILINEAR uint8": (resize("RESIZE_BILINEAR", "uint8"), Computer.LITERT),
    "RESIZE_BILINEAR uint8, corners": (
        resize("RESIZE_BILINEAR", "uint8", align_corners=True),
        Computer.GRAPH,
    ),
    "RESIZE_BILINEAR uint8, centres": (
        resize("RESIZE_BILINEAR", "uint8", half_pixel_centers=True),
        Computer.LITERT,
    ),
    "RESIZE_NEAREST_NEIGHBOR uint8": (
        resize("RESIZE_NEAREST_NEIGHBOR", "uint8"),
        Computer.GRAPH,
    ),
    "LOGISTIC uint8": (
        lambda: network("LOGISTIC", [(IMAGE, "uint8")], [(IMAGE, "uint8")], scale=1 / 256),
        Computer.GRAPH,
    ),
    "L2_NORMALIZATION uint8": (
        lambda: network(
            "L2_NORMALIZATION", [(IMAGE, "uint8")], [(IMAGE, "uint8")], ("L2NormOptions", {}),
            scale=1 / 128,
        ),
        Computer.LITERT,
    ),
    "GATHER_ND int32": (
        lambda: network(
            "GATHER_ND", [(IMAGE, "int32")], [((2, 3), "int32")], ("GatherNdOptions", {}),
            [np.array([[0, 1, 2], [0, 4, 3]], np.int32)],
        ),
        Computer.LITERT,
    ),
    "TOPK_V2 int8": (
        lambda: network(
            "TOPK_V2", [(IMAGE, "int8")], [((1, 5, 4, 2), "int8"), ((1, 5, 4, 2), "int32")],
            ("TopKV2Options", {}), [np.array(2, np.int32)],
        ),
        Computer.LITERT,
    ),
    "CUMSUM int32": (
        lambda: network(
            "CUMSUM", [(IMAGE, "int32")], [(IMAGE, "int32")], ("CumsumOptions", {}),
            [np.array(1, np.int32)],
        ),
        Computer.LITERT,
    ),
    "NEG int8": (same("NEG", "int8", ("NegOptions", {})), Computer.GRAPH),
    "SIGN float32": (same("SIGN", "float32"), Computer.LITERT),
    "ATAN2 float32": (same("ATAN2", "float32", None, 2), Computer.LITERT),
    "POW int32": (same("POW", "int32", ("PowOptions", {}), 2), Computer.LITERT),
}  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.normal(size=shape).astype(np.float32)
    low, high = (0, 5) if dtype == "int32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return rng.integers(low, high, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("name", CASES)
def test_what_the_kernels_lack_is_what_litert_computes(name: str) -> None:
    build, computer = CASES[name]
    data = build()
    kernels = HostKernels(data, [WHERE])
    main = kernels_model(data)
    inputs = [numbers((3, *shape), dtype, seed) for seed, (shape, dtype) in enumerate(main)]
    found = kernels.run(inputs)
    assert kernels.computers == {0: computer}
    with pytest.raises(KernelRefusalError):
        CpuKernels(data).run(inputs)
    for ours, theirs in zip(found, LiteRtKernels(data).run(inputs), strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def kernels_model(data: bytes) -> list[tuple[tuple[int, ...], str]]:
    from mizzen.frontends.tflite import read

    main = read(data, "").main
    return [(row.shape, str(row.dtype)) for row in main.present(main.inputs)]


WHERE = Origin("net", 5, "ODD", "y")
X = np.array([[[1, -2, 3, -4]], [[5, 6, -7, 8]]], np.int8)


def mixed() -> bytes:
    """Return a network of which the kernels take the first and the last operator only."""
    net = NetworkBuilder()
    x, a, b, y = (net.tensor(name, (1, 4), "int8", 0.5) for name in "xaby")
    net.operator("ABS", [x], [a])
    net.operator("GELU", [a], [b], ("GeluOptions", {}))
    net.operator("ABS", [b], [y])
    return net.finish([x], [y])


def test_only_what_the_kernels_refuse_is_computed_otherwise() -> None:
    kernels = HostKernels(mixed())
    assert np.array_equal(kernels.run([X])[0], LiteRtKernels(mixed()).run([X])[0])
    assert kernels.computers == {1: Computer.GRAPH}


def test_a_session_goes_on_operator_by_operator() -> None:
    kernels = HostKernels(mixed())
    session = kernels.session(2)
    for _ in range(2):
        assert np.array_equal(session.run([X], 2)[0], LiteRtKernels(mixed()).run([X])[0])


def test_state_beside_what_the_kernels_refuse_goes_on() -> None:
    net = NetworkBuilder()
    x, before = net.tensor("x", (1, 1), "int8", 0.5), net.tensor("before", (1, 1), "int8", 0.5)
    features = net.constant("features", np.array([[127]], np.int8), 1 / 127)
    times = net.constant("times", np.array([[64, 64, 64]], np.int16), 1 / 64)
    bias = net.constant("bias", np.zeros(1, np.int32), 1 / 128)
    state = net.tensor("state", (1, 3), "int16", 0.5, variable=True)
    y = net.tensor("y", (1, 1), "int8", 0.5)
    net.operator("GELU", [x], [before], ("GeluOptions", {}))
    net.operator("SVDF", [before, features, times, bias, state], [y], ("SVDFOptions", {"rank": 1}))
    given = [np.array([[[value]]], np.int8) for value in (20, 40, 60, 80)]
    alone, plain = HostKernels(net.finish([x], [y])).session(), HostKernels(delay_line()).session()
    found = [int(alone.run([row])[0][0, 0, 0]) for row in given]
    assert found == [int(plain.run([row])[0][0, 0, 0]) for row in given] == [20, 60, 120, 127]


def test_state_of_what_the_kernels_refuse_is_no_session() -> None:
    net = NetworkBuilder()
    x = net.tensor("x", (1, 2), "float32")
    weights = [net.constant(name, np.ones((3, size), np.float32)) for name, size in ("i2", "r3")
               for size in [int(size)]]  # fmt: skip
    bias = net.constant("b", np.zeros(3, np.float32))
    hidden = net.tensor("h", (1, 3), "float32", variable=True)
    y = net.tensor("y", (1, 3), "float32")
    net.operator("RNN", [x, *weights, bias, hidden], [y], ("RNNOptions", {}))
    kernels = HostKernels(net.finish([x], [y]), [WHERE])
    given = np.array([[[1.0, 2.0]]], np.float32)
    assert kernels.run([given])[0].tolist() == [[[3.0, 3.0, 3.0]]]
    with pytest.raises(MizzenError) as caught:
        kernels.session().run([given], 1)
    assert str(caught.value) == (
        "error[E708]: a session must keep the state of its operators, but this one has no kernel "
        "in TensorFlow Lite Micro, and LiteRT starts each inference anew\n"
        '  at   net, operator 5 ODD -> "y"\n'
        "  help infer with `run`, where every inference starts anew"
    )


def test_what_nothing_computes_says_what_both_say() -> None:
    data = same("RSQRT", "int32")()
    with pytest.raises(NothingComputesError) as caught:
        HostKernels(data, [WHERE]).run([numbers((1, *IMAGE), "int32", 0)])
    said = str(caught.value)
    assert said.startswith("error[E702]: TFLite Micro's kernels must take the operators left on")
    assert "; LiteRT's kernels must take the network, but say: " in said
    assert caught.value.why.startswith(
        "neither TensorFlow Lite Micro nor LiteRT has a kernel that takes it (the first says "
    )


def test_without_litert_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert, "is_installed", lambda: False)
    build, _ = CASES["TOPK_V2 int8"]
    with pytest.raises(NothingComputesError) as caught:
        HostKernels(build()).run([numbers((1, *IMAGE), "int8", 0)])
    assert "; LiteRT, which may have one, is not installed (pip install '.[litert]' in " in str(
        caught.value
    )
    assert caught.value.diagnostic.help == (
        "use operators that TFLite Micro has, or that the NPU takes; or let LiteRT compute it "
        "here: pip install '.[litert]' in the folder of Mizzen's sources"
    )
    litert._workers.end()
    with pytest.raises(MizzenError, match="E721"):
        LiteRtKernels(unary("ABS")).run([X[:1]])


def test_operators_of_others_are_nothing_for_litert() -> None:
    with pytest.raises(KernelRefusalError) as caught:
        HostKernels(chain("ABS", "SomebodysOwn")).run([X])
    assert "LiteRT" not in str(caught.value)


def test_litert_is_not_asked_where_its_kernels_are_no_oracle() -> None:
    data = network(
        "SOFTMAX", [(IMAGE, "uint8")], [(IMAGE, "uint8")], ("SoftmaxOptions", {"beta": 1.0})
    )
    with pytest.raises(NothingComputesError, match="does not read its output's scale"):
        HostKernels(data).run([numbers((1, *IMAGE), "uint8", 0)])


def test_a_network_that_ends_litert_is_an_error_and_not_the_end() -> None:
    kernels = LiteRtKernels(unary("ABS"))
    before = kernels.run([X[:1]])
    for worker in litert._workers:
        worker.process.kill()
        worker.process.wait()
    assert np.array_equal(kernels.run([X[:1]])[0], before[0])
