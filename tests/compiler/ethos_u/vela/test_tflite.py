"""What stops the compiler is found, kept on the CPU, and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mizzen.compiler.ethos_u.vela.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.vela.outcome import defects_of

import mizzen
from mizzen.artifact.steps import read_network as read
from mizzen.compiler.ethos_u.vela import cpu_fallback as fallback
from mizzen.cpu.tflm import CpuKernels
from mizzen.flatbuffer import read as read_record
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Cause, Compiled, Stopped

from ..networks import MAP, Net, error, regions, report_of  # noqa: TID252 tests are no package with a name

ModelFile = Callable[[str], Path]


def comparison(kind: str, options: str) -> bytes:
    """Whether two maps are equal, given out as a boolean, beside an ADD."""
    net = Net()
    same = net.map("same", "bool")
    net.operator(kind, [net.sum, net.second], [same], (options, {}))
    return net.finish([net.first, net.second], [same, net.sum])


def same_as_tflm(data: bytes, artifact: mizzen.Artifact) -> bool:
    from tflite_micro.python.tflite_micro import runtime

    rng = np.random.default_rng(0)
    inputs = [rng.integers(0, 2, row.shape).astype(row.dtype) for row in artifact.inputs]
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 20)
    for index, values in enumerate(inputs):
        interpreter.set_input(values, index)
    interpreter.invoke()
    outputs = artifact.run(*inputs)
    every = outputs if isinstance(outputs, tuple) else (outputs,)
    theirs = [interpreter.get_output(index) for index in range(len(every))]
    return all(np.array_equal(a, b) for a, b in zip(every, theirs, strict=True))


def transposed_to_a_size(*, computed: bool) -> bytes:
    """A TRANSPOSE_CONV to a size that the network takes, or computes from another input."""
    net, rng = NetworkBuilder("net"), np.random.default_rng(1)
    x = net.tensor("x", (1, 5, 5, 6), "int8", 0.05, 3)
    like = net.tensor("like", (1, 10, 10, 4), "int8", 0.05, 1)
    size = net.tensor("size", (4,), "int32")
    weights = net.constant("weights", rng.integers(-127, 128, (4, 3, 3, 6)).astype(np.int8), 0.01)
    bias = net.constant("bias", rng.integers(-100, 100, 4).astype(np.int32), 0.0005)
    y, z = (net.tensor(name, (1, 10, 10, 4), "int8", 0.1) for name in "yz")
    if computed:
        net.operator("SHAPE", [like], [size], ("ShapeOptions", {"out_type": TensorType.INT32}))
    net.operator("TRANSPOSE_CONV", [size, weights, x, bias], [y],
                 ("TransposeConvOptions", {"stride_h": 2, "stride_w": 2}), version=3)  # fmt: skip
    net.operator("ADD", [y, like], [z], ("AddOptions", {}))
    return net.finish([x, like] if computed else [x, like, size], [z])


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize("computed", [False, True])
def test_a_size_that_the_network_takes_or_computes_carries_nothing(
    computed: bool, accelerator: str
) -> None:
    data = transposed_to_a_size(computed=computed)
    artifact = mizzen.compile(data, accelerator)
    assert ("TRANSPOSE_CONV", "NPU") in regions(artifact)
    assert same_as_tflm(data, artifact)
    assert report_of(artifact).diagnostics == ()
    proof = report_of(artifact).proof
    assert (proof.parts, proof.equal, proof.unproved) == (1, 1, ())


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
@pytest.mark.parametrize(
    ("kind", "options"), [("EQUAL", "EqualOptions"), ("LESS_EQUAL", "LessEqualOptions")]
)
def test_a_boolean_output_that_stops_the_compiler(
    kind: str, options: str, accelerator: str
) -> None:
    data = comparison(kind, options)
    artifact = mizzen.compile(data, accelerator)
    assert regions(artifact) == [("ADD", "NPU"), (kind, "CPU")]
    (warning,) = report_of(artifact).diagnostics
    assert warning.render() == (
        f"warning[W305]: 1 operator is kept on the CPU ({kind}), because the compiler stops "
        "otherwise: Non-passthrough operation (And) could not run on NPU\n"
        f'  at   model.tflite, operator 1 {kind} -> "same"\n'
        "  rule Vela 5.2.0\n"
        "  help nothing needs doing if the CPU has time for it"
    )
    assert [row.dtype.name for row in artifact.outputs] == ["bool", "int8"]
    assert same_as_tflm(data, artifact)


@pytest.mark.parametrize("kind", ["AND", "OR", "NOT"])
def test_boolean_inputs_that_stop_the_compiler(kind: str) -> None:
    net = Net()
    inputs = [net.map(f"b{i}", "bool") for i in range(1 if kind == "NOT" else 2)]
    both = net.map("both", "bool")
    options = (f"Logical{kind.title()}Options", {})
    net.operator(f"LOGICAL_{kind}", inputs, [both], options)
    chosen = net.map("chosen")
    net.operator("SELECT_V2", [both, net.sum, net.second], [chosen], ("SelectV2Options", {}))
    data = net.finish([*inputs, net.first, net.second], [net.twice(chosen)])
    artifact = mizzen.compile(data, "ethos-u55-128")
    assert [region for _, region in regions(artifact)] == ["NPU", "CPU", "CPU", "NPU"]
    assert same_as_tflm(data, artifact)


def test_booleans_inside_need_no_help() -> None:
    net = Net()
    same, chosen = net.map("same", "bool"), net.map("chosen")
    net.operator("EQUAL", [net.sum, net.second], [same], ("EqualOptions", {}))
    net.operator("SELECT_V2", [same, net.sum, net.second], [chosen], ("SelectV2Options", {}))
    data = net.finish([net.first, net.second], [net.twice(chosen)])
    artifact = mizzen.compile(data, "ethos-u55-128")
    assert not report_of(artifact).diagnostics
    assert same_as_tflm(data, artifact)


def test_only_what_stops_the_compiler_is_kept_from_it() -> None:
    """Two sums: the one over computed axes crashes the compiler, the other is for the NPU."""
    net = Net()
    axes = net.tensor("axes", [1], "int32")
    fixed = net.constant("fixed", np.array([3], np.int32))
    options = ("ReducerOptions", {"keep_dims": True})
    first, second = (net.map(n, shape=(1, 4, 4, 1)) for n in ("first-sum", "second-sum"))
    net.operator("SUM", [net.sum, axes], [first], options)
    net.operator("SUM", [net.sum, fixed], [second], options)
    artifact = mizzen.compile(
        net.finish([net.first, net.second, axes], [first, second]), "ethos-u55-128"
    )
    assert [region for _, region in regions(artifact)] == ["NPU", "CPU", "NPU"]
    (reason,) = report_of(artifact).placements[1].reasons
    assert reason.message == (
        "SUM must have constant parameters (axes, sizes, paddings), and has "
        '"axes", which the network computes'
    )


def two_crashes() -> bytes:
    """QUANTIZE of 32 bits crashes the compiler for U85, and no rule says so."""
    net = Net()
    wide = net.map("wide", "int32")
    net.operator("QUANTIZE", [net.sum], [wide], ("QuantizeOptions", {}))
    narrow = net.map("narrow")
    net.operator("QUANTIZE", [wide], [narrow], ("QuantizeOptions", {}))
    other = net.map("other", "int32")
    net.operator("MUL", [net.first, net.second], [other], ("MulOptions", {}))
    other_narrow = net.map("other-narrow")
    net.operator("QUANTIZE", [other], [other_narrow], ("QuantizeOptions", {}))
    results = [net.twice(narrow), net.twice(other_narrow)]
    return net.finish([net.first, net.second], results)


def test_what_nobody_knew_to_stop_the_compiler_is_found() -> None:
    data = two_crashes()
    artifact = mizzen.compile(data, "ethos-u85-256", prove="off")
    on_cpu = report_of(artifact).on_cpu
    assert [row.index for row in on_cpu] == [2, 4]
    assert {reason.rule for row in on_cpu for reason in row.reasons} == {"stops-the-compiler"}
    assert "it crashed (signal SIGSEGV)" in on_cpu[0].reasons[0].message
    (warning,) = report_of(artifact).diagnostics
    assert warning.message.startswith("2 operators are kept on the CPU (QUANTIZE)")


def test_an_endless_run_is_found_too() -> None:
    net = Net()
    result = net.map("result", "int16")
    net.operator("LOGISTIC", [net.sum], [result])
    data = net.finish([net.first, net.second], [result])
    model = read(data, "model.tflite")
    found = compile_with_cpu_fallback(model, data, resolve("ethos-u85-256"), time_limit_seconds=1.0)
    assert found.hidden == {1}
    assert found.stopped is not None
    assert found.stopped.cause is Cause.TIME_LIMIT


def test_a_hidden_operator_keeps_its_options_and_intermediates() -> None:
    """An LSTM whose cell has 8 bits crashes the compiler."""
    net = NetworkBuilder()
    units, values = 4, 3
    rng = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> int:
        return net.constant(name, rng.integers(-100, 100, shape, np.int8), 0.01)

    x = net.tensor("x", [1, 2, values], "int8", 0.02)
    relu = net.tensor("relu", [1, 2, values], "int8", 0.02)
    net.operator("RELU", [x], [relu])
    inputs = [relu] + [weights(f"i{g}", units, values) for g in range(4)]
    inputs += [weights(f"r{g}", units, units) for g in range(4)] + [-1] * 3
    inputs += [net.constant(f"b{g}", np.zeros(units, np.int32), 0.001) for g in range(4)]
    inputs += [-1, -1] + [net.tensor(n, [1, units], "int8", 0.01, variable=True) for n in "hc"]
    between = [net.tensor(f"between{g}", [1], "int16", 0.001) for g in range(5)]
    y = net.tensor("y", [1, 2, units], "int8", 0.01)
    options: dict[str, Any] = {"fused_activation_function": 4, "cell_clip": 10.0}
    net.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [*inputs, -1, -1, -1, -1],
        [y],
        ("UnidirectionalSequenceLSTMOptions", options),
        intermediates=between,
        version=3,
    )
    artifact = mizzen.compile(net.finish([x], [y]), "ethos-u55-128")
    compiled = read(artifact.data, "artifact")
    (lstm,) = [row for row in compiled.main.operators if row.kind.endswith("LSTM")]
    assert lstm.version == 3
    assert lstm.options["cell_clip"] == 10.0
    assert lstm.options["fused_activation_function"] == 4
    names = [compiled.main.tensors[index].name for index in lstm.intermediates if index >= 0]
    assert set(names) <= {f"between{g}" for g in range(5)}
    assert len(lstm.intermediates) == 5
    assert all(row.kind in ("ethos-u", lstm.kind) for row in compiled.main.operators)


def test_a_custom_operator_with_our_name_is_left_alone() -> None:
    net = Net()
    own, same = net.map("own"), net.map("same", "bool")
    net.operator("mizzen-operator-0", [net.sum], [own], custom_options=b"\x01\x02")
    net.operator("EQUAL", [own, net.second], [same], ("EqualOptions", {}))
    artifact = mizzen.compile(net.finish([net.first, net.second], [same]), "ethos-u55-128")
    assert [kind for kind, _ in regions(artifact)] == ["ADD", "mizzen-operator-0", "EQUAL"]
    kinds = [row.kind for row in read(artifact.data, "artifact").main.operators]
    assert kinds == ["ethos-u", "mizzen-operator-0", "EQUAL"]


def summed(*axes: int) -> bytes:
    net = Net()
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(MAP))
    parameter = net.constant("axes", np.array(axes, np.int32))
    result = net.map("total", shape=shape)
    net.operator("SUM", [net.sum, parameter], [result], ("ReducerOptions", {"keep_dims": True}))
    return net.finish([net.first, net.second], [result])


def test_a_known_defect_of_the_compiler_is_avoided() -> None:
    artifact = mizzen.compile(summed(1, 2), "ethos-u55-128")
    (warning,) = report_of(artifact).diagnostics
    assert warning.code == "W307"
    assert warning.message.startswith("SUM is on the CPU: the result will be wrong: SUM must have")
    assert [row.kind for row in report_of(artifact).on_cpu] == ["SUM"]
    assert same_as_tflm(summed(1, 2), artifact)


def test_a_known_defect_of_the_compiler_is_told() -> None:
    artifact = mizzen.compile(summed(1, 2), "ethos-u55-128", prove="off", allow_inexact=True)
    (warning,) = report_of(artifact).diagnostics
    assert warning.render() == (
        "warning[W306]: the result will be wrong: SUM must have one axis for this compiler, and "
        "has axes 1, 2\n"
        '  at   model.tflite, operator 1 SUM -> "total"\n'
        "  rule Vela 5.2.0 compiles it wrongly, found by running the result\n"
        "  help sum one axis after the other, or keep it on the CPU with `--ignore-ops SUM`"
    )
    assert not report_of(mizzen.compile(summed(1), "ethos-u55-128")).diagnostics
    kept = mizzen.compile(summed(1, 2), "ethos-u55-128", ignore_ops=["SUM"])
    assert [row.code for row in report_of(kept).diagnostics] == []
    assert same_as_tflm(summed(1, 2), kept)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_layers_with_real_weights_are_on_the_cpu(accelerator: str) -> None:
    net, rng = Net(), np.random.default_rng(0)
    real, result = net.map("real", "float32"), net.map("result", "float32", (1, 4, 4, 3))
    net.operator("DEQUANTIZE", [net.sum], [real], ("DequantizeOptions", {}))
    weights = net.constant("weights", rng.normal(size=(3, 3, 3, 8)).astype(np.float32))
    bias = net.constant("bias", rng.normal(size=3).astype(np.float32))
    fields = ("stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor")
    ones: dict[str, Any] = dict.fromkeys(fields, 1)
    net.operator("CONV_2D", [real, weights, bias], [result], ("Conv2DOptions", ones))
    data = net.finish([net.first, net.second], [result])
    artifact = mizzen.compile(data, accelerator)
    assert regions(artifact) == [("ADD", "NPU"), ("DEQUANTIZE", "CPU"), ("CONV_2D", "CPU")]
    assert same_as_tflm(data, artifact)


def reduced(kind: str, axes: tuple[int, ...], *, keep_dims: bool) -> bytes:
    net = Net()
    extents = [1 if axis in axes else size for axis, size in enumerate(MAP)]
    shape = extents if keep_dims else [MAP[axis] for axis in range(4) if axis not in axes]
    result = net.map("least", shape=tuple(shape))
    options = ("ReducerOptions", {"keep_dims": keep_dims})
    net.operator(kind, [net.sum, net.constant("axes", np.array(axes, np.int32))], [result], options)
    return net.finish([net.first, net.second], [result])


@pytest.mark.parametrize("kind", ["REDUCE_MIN", "REDUCE_MAX"])
@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize(
    ("axes", "keep_dims", "wrong"),
    [((3,), False, True), ((2,), False, True), ((1, 3), False, True), ((2, 3), False, True),
     ((1,), False, False), ((1, 2), False, False), ((3,), True, False), ((1, 3), True, False)],
)  # fmt: skip
def test_an_axis_that_is_dropped_behind_a_kept_one(
    kind: str, accelerator: str, axes: tuple[int, ...], keep_dims: bool, wrong: bool
) -> None:
    """The compiler reads such a map as if its axes were in another order."""
    data = reduced(kind, axes, keep_dims=keep_dims)
    model = read(data, "model")
    arch = Arch.U85 if "u85" in accelerator else Arch.U55
    found = [row.rule for row in defects_of(model, model.main.operators[1], arch)]
    assert found == (["dropped-axis"] if wrong else [])
    assert same_as_tflm(data, mizzen.compile(data, accelerator))


def test_a_table_outside_the_smallest_shared_buffer() -> None:
    """The compiler puts the table of what follows a TRANSPOSE behind the 16 KiB of Ethos-U55-32."""
    net = Net()
    moved, result = net.map("moved", shape=(1, 8, 4, 4)), net.map("result", shape=(1, 8, 4, 4))
    order = net.constant("order", np.array([0, 3, 1, 2], np.int32))
    net.operator("TRANSPOSE", [net.sum, order], [moved], ("TransposeOptions", {}))
    net.operator("LEAKY_RELU", [moved], [result], ("LeakyReluOptions", {"alpha": 0.3}))
    data = net.finish([net.first, net.second], [result])
    assert same_as_tflm(data, mizzen.compile(data, "ethos-u55-32"))


def softmax(depth: int) -> bytes:
    net = NetworkBuilder()
    x = net.tensor("x", (1, depth), np.int8, 0.1)
    y = net.tensor("y", (1, depth), np.int8, 1 / 256, -128)
    net.operator("SOFTMAX", [x], [y], ("SoftmaxOptions", {"beta": 1.0}))
    return net.finish([x], [y])


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
@pytest.mark.parametrize("depth", [511, 512, 700])
def test_rows_without_a_winner_stop_as_the_kernel_does(depth: int, accelerator: str) -> None:
    data = softmax(depth)
    artifact = mizzen.compile(data, accelerator, prove="off")
    assert regions(artifact) == [("SOFTMAX", "NPU")]
    for equal in {1, 511, min(depth, 512), depth}:
        x = np.where(np.arange(depth) < equal, 50, -128).astype(np.int8)[None]
        if equal < 512:
            assert np.array_equal(artifact.run(x), CpuKernels(data).run([x[None]])[0][0])
            continue
        with pytest.raises(mizzen.MizzenError, match=r"\[E642\]"):
            artifact.run(x)
        with pytest.raises(mizzen.MizzenError, match=r"\[E703\]"):
            CpuKernels(data).run([x[None]])


@pytest.mark.parametrize(("depth", "rules"), [(4095, []), (4096, ["softmax-sum"])])
def test_rows_whose_exponentials_32_bits_do_not_sum(depth: int, rules: list[str]) -> None:
    model = read(softmax(depth), "model")
    assert [row.rule for row in defects_of(model, model.main.operators[0], Arch.U55)] == rules


def test_where_nothing_helps(monkeypatch: pytest.MonkeyPatch, model_file: ModelFile) -> None:
    stopped = Stopped(Cause.CRASHED, "the compiler must live, and crashed", "it crashed", (), "")

    def never(*_: object, **__: object) -> Compiled | Stopped:
        return stopped

    monkeypatch.setattr(fallback, "generate", never)
    assert error(model_file("hello_world_int8.tflite")) == (
        "error[E302]: the compiler must live, and crashed; it does so too with every "
        "FULLY_CONNECTED on the CPU\n"
        "  help keep operators on the CPU one type at a time with `--ignore-ops` to find which "
        "one it is"
    )


def test_the_search_ends_after_so_many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators that were not tried stay on the CPU."""
    tries: list[int] = []
    real = fallback.generate

    def counted(*positional: Any, **keywords: Any) -> Compiled | Stopped:
        tries.append(1)
        return real(*positional, **keywords)

    monkeypatch.setattr(fallback, "generate", counted)
    monkeypatch.setattr(fallback, "TRIES", 2)
    artifact = mizzen.compile(two_crashes(), "ethos-u85-256")
    assert len(tries) <= 4
    assert {row.index for row in report_of(artifact).on_cpu} >= {2, 4}


def test_hiding_everything_gives_the_network_back() -> None:
    """Operator by operator: type, version, options, tensors."""
    from mizzen.compiler.ethos_u.vela.masking import mask, unmask

    from mizzen.targets.ethos_u.vela.generate import generate

    data = comparison("EQUAL", "EqualOptions")
    model = read(data, "model.tflite")
    hidden = {0, 1}
    compiled = generate(mask(model, hidden), resolve("ethos-u55-128"))
    assert isinstance(compiled, Compiled)
    again = read(unmask(compiled.network, model, hidden), "again")
    for old, new in zip(model.main.operators, again.main.operators, strict=True):
        assert (old.kind, old.version, old.options) == (new.kind, new.version, new.options)
        names = [
            [tensor.name for tensor in network.main.present(indices)]
            for network, row in ((model, old), (again, new))
            for indices in (row.inputs, row.outputs)
        ]
        assert names[:2] == names[2:]
    assert [again.main.tensors[i].type for i in again.main.outputs] == [
        model.main.tensors[i].type for i in model.main.outputs
    ]


@pytest.mark.parametrize("name", ["INT2", "UINT4", "FLOAT8_E4M3FN", "FLOAT8_E5M2"])
def test_a_type_that_the_compiler_cannot_read_is_named_with_its_operator(name: str) -> None:
    net = NetworkBuilder()
    x, total, b, c = (net.tensor(row, (1, 8, 8, 4), "int8", 0.1) for row in ("x", "s", "b", "c"))
    net.operator("ADD", [x, x], [total], ("AddOptions", {}))
    net.operator("ABS", [b], [c], ("AbsOptions", {}))
    record = read_record(net.finish([x, b], [total, c]), SCHEMA, "net")
    for index in (b, c):
        record["subgraphs"][0]["tensors"][index]["type"] = int(TensorType[name])
    with pytest.raises(mizzen.MizzenError) as caught:
        mizzen.compile(write(record, SCHEMA), "ethos-u55-128")
    said = str(caught.value)
    assert f'; its tensor "b" is {name}, which Vela does not read\n' in said
    assert '  at   model.tflite, operator 1 ABS -> "c"\n' in said
