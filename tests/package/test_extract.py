"""Networks cut in parts compute what the whole does, on TFLite Micro's kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Record, read
from mizzen.flatbuffer.tflite import SCHEMA, TensorType
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.package.tflite.extract import extract

Array = npt.NDArray[Any]
Values = dict[int, Array]

OPTIONS = {
    "RELU": None,
    "ABS": None,
    "ADD": ("AddOptions", {}),
    "SUB": ("SubOptions", {}),
    "MAXIMUM": ("MaximumMinimumOptions", {}),
}
ARENA_BYTES = 1 << 20


@st.composite
def networks(draw: st.DrawFn) -> bytes:
    """Draw a network of elementwise operators, each on inputs, constants or earlier tensors."""
    net = NetworkBuilder()
    inputs = [net.tensor(f"x{i}", (1, 5), "int8", 0.1) for i in range(draw(st.integers(1, 2)))]
    known = [*inputs, net.constant("c", np.array([[-90, -9, 0, 7, 80]], np.int8), 0.1)]
    made: list[int] = []
    for index in range(draw(st.integers(2, 6))):
        kind = draw(st.sampled_from(list(OPTIONS)))
        count = 2 if OPTIONS[kind] else 1
        operands = [draw(st.sampled_from([*known, *made])) for _ in range(count)]
        made.append(net.tensor(f"t{index}", (1, 5), "int8", 0.1))
        net.operator(kind, operands, made[-1:], OPTIONS[kind])
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
    return net.finish(inputs, outputs)


def infer(network: bytes, inputs: Sequence[Array], outputs: int) -> list[Array]:
    runtime: Any = pytest.importorskip("tflite_micro", reason="tflite-micro is missing").runtime
    interpreter = runtime.Interpreter.from_bytes(network, arena_size=ARENA_BYTES)
    for index, array in enumerate(inputs):
        interpreter.set_input(array, index)
    interpreter.invoke()
    return [interpreter.get_output(index) for index in range(outputs)]


def indices(record: Record, field: str) -> list[int]:
    return record["subgraphs"][0][field].tolist()


def infer_cut(record: Record, values: Values, cuts: Sequence[int]) -> None:
    """Add to `values` what parts of the network compute, one after the other."""
    end = len(record["subgraphs"][0]["operators"])
    for start, stop in zip((0, *cuts), (*cuts, end), strict=True):
        part = extract(record, range(start, stop))
        outputs = infer(part.network, [values[i] for i in part.inputs], len(part.outputs))
        values.update(zip(part.outputs, outputs, strict=True))


def check_cut(network: bytes, cuts: Sequence[int], rng: np.random.Generator) -> None:
    record = read(network, SCHEMA, "net")
    tensors = record["subgraphs"][0]["tensors"]
    values = {
        index: rng.integers(-128, 128, tensors[index]["shape"]).astype(
            DTYPES[tensors[index]["type"]]
        )
        for index in indices(record, "inputs")
    }
    outputs = indices(record, "outputs")
    whole = infer(network, list(values.values()), len(outputs))
    infer_cut(record, values, cuts)
    for index, want in zip(outputs, whole, strict=True):
        assert np.array_equal(values[index], want)


DTYPES = {7: np.int16, 9: np.int8}


@settings(max_examples=40)
@given(networks(), st.data())
def test_a_network_and_its_parts_compute_the_same(network: bytes, data: st.DataObject) -> None:
    operators = len(read(network, SCHEMA, "net")["subgraphs"][0]["operators"])
    cuts = sorted(data.draw(st.sets(st.integers(1, operators - 1))))
    check_cut(network, cuts, np.random.default_rng(data.draw(st.integers(0, 9))))


@pytest.mark.parametrize(
    "name",
    ["ad01_int8.tflite", "audio_preprocessor_int8.tflite", "micro_speech_quantized.tflite",
     "pretrainedResnet_quant.tflite"],
)  # fmt: skip
def test_real_networks_and_their_parts_compute_the_same(
    model_file: Callable[[str], Path], name: str
) -> None:
    network = model_file(name).read_bytes()
    operators = len(read(network, SCHEMA, name)["subgraphs"][0]["operators"])
    rng = np.random.default_rng(0)
    for cuts in ([1], [operators // 3, operators // 2], list(range(1, operators))):
        check_cut(network, [cut for cut in cuts if cut], rng)


def diamond() -> tuple[NetworkBuilder, list[int]]:
    """x -> a -> (b, c), b + state -> d: with a weight, an absent input and metadata."""
    net = NetworkBuilder()
    x = net.tensor("x", (1, 4), "int8", 0.5)
    a, b, c, d = (net.tensor(name, (1, 4), "int8", 0.5) for name in "abcd")
    state = net.tensor("state", (1, 4), "int8", 0.5, variable=True)
    weights = net.constant("w", np.eye(4, dtype=np.int8), 1.0)
    net.operator("FULLY_CONNECTED", [x, weights, -1], [a], ("FullyConnectedOptions", {}))
    net.operator("RELU", [a], [b])
    net.operator("Mine", [a], [c], custom_options=b"\x01\x02")
    net.operator("ADD", [b, state], [d], ("AddOptions", {}))
    net.metadata("OfflineMemoryAllocation", b"\0" * 16)
    return net, [x, a, b, c, d, state, weights]


def part_of(operators: list[int], outputs: str = "d") -> tuple[Record, list[str], list[str]]:
    net, tensors = diamond()
    names = dict(zip("xabcd", tensors, strict=False))
    record = read(net.finish([tensors[0]], [names[name] for name in outputs]), SCHEMA, "net")
    part = extract(record, operators)
    named = {index: name for name, index in names.items()}
    extracted = read(part.network, SCHEMA, "part")
    return extracted, [named[i] for i in part.inputs], [named[i] for i in part.outputs]


@pytest.mark.parametrize(
    ("operators", "outputs", "takes", "gives"),
    [
        ([0], "d", "x", "a"),
        ([1, 2], "d", "a", "b"),
        ([1, 2], "cd", "a", "bc"),
        ([0, 1], "d", "x", "ab"),
        ([0, 1, 2, 3], "da", "x", "ad"),
        ([3], "d", "b", "d"),
    ],
)
def test_a_part_takes_what_it_lacks_and_gives_what_others_read(
    operators: list[int], outputs: str, takes: str, gives: str
) -> None:
    record, inputs, given_outputs = part_of(operators, outputs)
    assert (inputs, given_outputs) == (list(takes), list(gives))
    main = record["subgraphs"][0]
    names = [tensor["name"] for tensor in main["tensors"]]
    assert [names[index] for index in main["inputs"]] == list(takes)
    assert [names[index] for index in main["outputs"]] == list(gives)


def test_a_part_keeps_weights_state_and_options() -> None:
    record, _, _ = part_of([0])
    (operator,) = record["subgraphs"][0]["operators"]
    assert operator["inputs"].tolist()[2] == -1
    tensors = {tensor["name"]: tensor for tensor in record["subgraphs"][0]["tensors"]}
    assert set(tensors) == {"x", "w", "a"}
    assert record["buffers"][tensors["w"]["buffer"]]["data"].tolist() == np.eye(4).ravel().tolist()
    assert tensors["w"]["quantization"]["scale"].tolist() == [1.0]
    record, _, _ = part_of([2, 3], "cd")
    mine, add = record["subgraphs"][0]["operators"]
    assert mine["custom_options"].tolist() == [1, 2]
    assert record["operator_codes"][mine["opcode_index"]]["custom_code"] == "Mine"
    assert add["builtin_options"].table == "AddOptions"
    states = [tensor["is_variable"] for tensor in record["subgraphs"][0]["tensors"]]
    assert states.count(True) == 1


def test_a_part_says_nothing_of_the_whole_networks_memory() -> None:
    record, _, _ = part_of([0])
    assert record["metadata"] is None
    assert len(record["operator_codes"]) == 1
    assert len(record["buffers"]) == 2


def test_called_subgraphs_go_with_their_callers() -> None:
    net, tensors = diamond()
    record = read(net.finish(tensors[:1], tensors[4:5]), SCHEMA, "net")
    main = record["subgraphs"][0]
    called = {**main, "name": "called", "operators": main["operators"][1:2]}
    record["subgraphs"].append(called)
    record["operator_codes"].append({"deprecated_builtin_code": 118, "builtin_code": 118,
                                     "custom_code": None, "version": 1})  # fmt: skip
    main["operators"].append({**main["operators"][0], "opcode_index": 4})
    caller = read(extract(record, [4]).network, SCHEMA, "part")
    assert [subgraph["name"] for subgraph in caller["subgraphs"]] == ["main", "called"]
    (operator,) = caller["subgraphs"][1]["operators"]
    assert caller["operator_codes"][operator["opcode_index"]]["builtin_code"] == 19
    assert operator["inputs"].tolist() == [1]
    assert len(read(extract(record, [0]).network, SCHEMA, "part")["subgraphs"]) == 1


def test_state_that_others_share_is_refused() -> None:
    net, (x, a, *_, d, state, _) = diamond()
    net.operator("ADD", [a, state], [d], ("AddOptions", {}))
    record = read(net.finish([x], [d]), SCHEMA, "net")
    assert extract(record, [3, 4]).inputs
    with pytest.raises(MizzenError) as caught:
        extract(record, [3])
    assert str(caught.value) == (
        'error[E130]: state tensor 5 "state" must belong to operators that run together on the '
        "CPU, not to operators 3 and 4 with operators for the NPU between them\n"
        "  help keep the operators between them on the CPU too, with `--ignore-ops`"
    )


def resources() -> Record:
    net = NetworkBuilder()
    handle = net.tensor("handle", [1], "int32")
    x = net.tensor("x", (1, 4), "int8", 0.5)
    net.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "v"}))
    net.operator("ABS", [x], [x])
    net.operator("ASSIGN_VARIABLE", [handle, x], [])
    record = read(net.finish([x], [x]), SCHEMA, "net")
    record["subgraphs"][0]["tensors"][0]["type"] = int(TensorType.RESOURCE)
    return record


def test_resources_stay_together() -> None:
    assert extract(resources(), [0, 1, 2]).outputs == (1,)
    with pytest.raises(MizzenError) as caught:
        extract(resources(), [2])
    assert str(caught.value).startswith(
        "error[E130]: the network's resources must belong to operators that run together on the "
        "CPU, not to operators 2 and 0"
    )


def test_only_arrays_go_between_parts() -> None:
    record = resources()
    record["subgraphs"][0]["operators"].pop(0)
    with pytest.raises(MizzenError) as caught:
        extract(record, [1])
    assert str(caught.value) == (
        'error[E131]: tensor 0 "handle" must be an array to go from one part of the network to '
        "another, not RESOURCE\n"
        "  help keep the operators around it on the CPU too, with `--ignore-ops`"
    )
