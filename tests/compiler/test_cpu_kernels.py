"""Operators that the CPU has no kernel of are told when a network is compiled or checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mizzen
from mizzen.cpu.litert import LiteRtKernels
from mizzen.diagnostics import Diagnostic, MizzenError
from mizzen.package.tflite.builder import NetworkBuilder

SHAPE = (1, 4, 4, 8)


class Net(NetworkBuilder):
    """ADD, and an operator that no NPU takes."""

    def __init__(self, dtype: str = "int8") -> None:
        super().__init__()
        self.dtype = dtype
        self.x, self.total = self.map("x"), self.map("total")
        self.operator("ADD", [self.x, self.x], [self.total], ("AddOptions", {}))

    def map(self, name: str, shape: tuple[int, ...] = SHAPE) -> int:
        zero = 128 if self.dtype == "uint8" else 0
        return self.tensor(name, shape, self.dtype, 0.1, zero)


def custom() -> bytes:
    net = Net()
    y = net.map("y")
    net.operator("SomebodysOwn", [net.total], [y], custom_options=b"\x01\x02")
    return net.finish([net.x], [y])


def unsigned() -> bytes:
    net = Net("uint8")
    y = net.map("y")
    net.operator("FLOOR_DIV", [net.total, net.total], [y], ("FloorDivOptions", {}))
    return net.finish([net.x], [y])


def unsigned_resize() -> bytes:
    net = Net("uint8")
    y = net.map("y", (1, 9, 7, 8))
    size = net.constant("size", np.array([9, 7], np.int32))
    net.operator("RESIZE_BILINEAR", [net.total, size], [y], ("ResizeBilinearOptions", {}))
    return net.finish([net.x], [y])


def unsigned_relu() -> bytes:
    net = Net("uint8")
    y = net.map("y")
    net.operator("RELU", [net.total], [y])
    return net.finish([net.x], [y])


MISSING: dict[str, tuple[Callable[[], bytes], str]] = {
    "SomebodysOwn": (custom, "Failed to get registration from op code CUSTOM"),
    "FLOOR_DIV": (unsigned, "Type 'UINT8' is not supported by FLOOR_DIV"),
}

OTHERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "RESIZE_BILINEAR": (unsigned_resize, "LiteRT"),
    "RELU": (unsigned_relu, "Mizzen's integer reference"),
}
"""What TFLite Micro has no kernel for and this host has; and who computes it here."""


def told(rows: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [row for row in rows if row.code == "W309"]


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple"])
def test_compile_and_check_say_what_run_would_stop_at(kind: str, accelerator: str) -> None:
    build, said = MISSING[kind]
    artifact = mizzen.compile(build(), accelerator)
    assert artifact.report is not None
    checked = mizzen.check(build(), accelerator, max_cpu_ops=None)
    for rows in (artifact.report.diagnostics, checked.compilation.diagnostics):
        found = {row.origin.kind: row for row in told(rows) if row.origin is not None}
        row = found[kind]
        assert row.message.startswith(f"{kind} is on the CPU, where `mizzen run` stops at it: ")
        assert said in row.message
    x = artifact.inputs[0]
    with pytest.raises(MizzenError):
        artifact.run(np.zeros(x.shape, x.dtype))


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple"])
def test_what_only_this_host_computes_is_told_and_runs(kind: str, accelerator: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    build, who = OTHERS[kind]
    artifact = mizzen.compile(build(), accelerator, ignore_ops=[kind])
    assert artifact.report is not None
    assert not told(artifact.report.diagnostics)
    rows = [row for row in artifact.report.diagnostics if row.code == "W316"]
    assert [row.message for row in rows if row.message.startswith(kind)] == [
        f"{kind} is on the CPU, and TFLite Micro has no kernel that takes it: on this host {who} "
        "computes it, a device cannot"
    ]
    x = artifact.inputs[0]
    given = np.random.default_rng(5).integers(0, 100, x.shape).astype(x.dtype)
    found = artifact.run(given)
    theirs = LiteRtKernels(build()).run([given[np.newaxis]])
    assert f"{kind} was computed by {who}, because TensorFlow Lite Micro has no kernel" in [
        note.message.removesuffix(" that takes it: a device needs one") for note in artifact.notes
    ]
    for ours, expected in zip(found if isinstance(found, tuple) else (found,), theirs, strict=True):
        assert np.array_equal(ours, expected[0])


def test_the_warning_in_full() -> None:
    report = mizzen.compile(custom(), "ethos-u55-128").report
    assert report is not None
    (row,) = told(report.diagnostics)
    assert row.render() == (
        "warning[W309]: SomebodysOwn is on the CPU, where `mizzen run` stops at it: TFLite "
        "Micro's kernels must take the operators left on the CPU, but say: Failed to get "
        "registration from op code CUSTOM; TFLM failed to allocate tensors\n"
        '  at   model.tflite, operator 1 SomebodysOwn -> "y"\n'
        "  help use operators that TFLite Micro has, or that the NPU takes; nothing needs doing if "
        "the application brings a kernel of its own"
    )


def test_operators_with_kernels_are_no_warning() -> None:
    net = Net()
    y = net.map("y")
    net.operator("ABS", [net.total], [y])
    data = net.finish([net.x], [y])
    report = mizzen.compile(data, "ethos-u55-128", ignore_ops=["ABS"]).report
    assert report is not None
    assert report.on_cpu
    assert not told(report.diagnostics)
