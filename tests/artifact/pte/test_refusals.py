"""What of a program cannot be run, and how that is said."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.flatbuffer import Member, Record

from .changing import changed, instruction, instructions, plan, value

Change = Callable[[Record], None]
NEEDS_TORCH = pytest.mark.skipif(
    find_spec("torch") is None, reason="PyTorch is not installed (pip install '.[torch]')"
)


def other_backend(program: Record) -> None:
    plan(program)["delegates"][0]["id"] = "XnnpackBackend"


def jump(program: Record) -> None:
    instructions(program).insert(
        1, instruction("JumpFalseCall", cond_value_index=2, destination_instruction=3)
    )


def dynamic(program: Record) -> None:
    value(program, 0)["shape_dynamism"] = 1


def two_methods(program: Record) -> None:
    first = plan(program)
    program["execution_plan"] = [{**first, "name": "one"}, {**first, "name": "two"}]


def other_size(program: Record) -> None:
    value(program, 0)["sizes"] = [1, 1, 25, 11]
    value(program, 1)["sizes"] = [1, 1, 25, 11]


def unknown_kernel(program: Record) -> None:
    plan(program)["operators"][2]["name"] = "custom::thing"


def bfloat(program: Record) -> None:
    value(program, 0)["scalar_type"] = 15


def external(program: Record) -> None:
    fields = value(program, 0)
    fields["allocation_info"] = None
    fields["extra_tensor_info"] = {"location": 1, "fully_qualified_name": "head.weight"}


def no_such_value(program: Record) -> None:
    instructions(program)[0]["instr_args"].fields["args"] = [0, 2, 3, 4, 5, 6, 1, 999]


def not_given(program: Record) -> None:
    value(program, 0)["allocation_info"] = None
    plan(program)["inputs"] = []


def negative_scale(program: Record) -> None:
    value(program, 2)["double_val"] = -1.0


def nothing_planned(program: Record) -> None:
    plan(program)["non_const_buffer_sizes"] = [0, 16]


def constant_output(program: Record) -> None:
    fields = value(program, 1)
    fields["allocation_info"], fields["data_buffer_idx"] = None, 1
    program["constant_segment"] = None
    program["constant_buffer"] = [{"storage": []}, {"storage": [0] * 250}]


def two_chains(program: Record) -> None:
    plan(program)["chains"] = plan(program)["chains"] * 2


CASES: list[tuple[Change, str, str]] = [
    (other_backend, "E177", "net.pte: delegate 0 must be one of EthosUBackend, and is one of "
     "XnnpackBackend: Mizzen does not know what that computes"),
    (jump, "E178", "net.pte: a program must be a sequence of calls, and instruction 1 jumps: it "
     "has control flow"),
    (dynamic, "E178", "net.pte: shapes must be static, and that of value 0 is not: "
     "[1, 1, 25, 10] is the most that it can be"),
    (two_methods, "E179", "net.pte must have one method, or one that is 'forward', and has 'one', "
     "'two'"),
    (other_size, "E181", "net.pte: value 1 must have the 250 bytes that its delegate takes or "
     "gives, in elements of 1, and has 275 in int8"),
    (unknown_kernel, "E182", "kernels of a program must be those that PyTorch has, and "
     "custom::thing.out is not one"),
    (bfloat, "E176", "net.pte: value 0 must be of a type that NumPy has, not of scalar type 15"),
    (external, "E172", "net.pte: the data of value 0, 'head.weight', must be given, and is in "
     "another file"),
    (no_such_value, "E173", "net.pte must be a whole ExecuTorch program: instruction 0 must use "
     "one of {count} values, not 999"),
    (not_given, "E181", "net.pte: something must give value 0 before it is taken"),
    (negative_scale, "E181", "net.pte: quantized_decomposed::quantize_per_tensor.out must have a "
     "positive scale, not -1.0"),
    (nothing_planned, "E173", "net.pte must be a whole ExecuTorch program: value 0 must lie in 16 "
     "bytes of planned memory, and ends at {end}"),
    (constant_output, "E181", "net.pte: nothing must write to value 1, which is a constant"),
    (two_chains, "E173", "net.pte must be a whole ExecuTorch program: a method must have one chain "
     "of instructions, not 2"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code", "message"), CASES, ids=lambda row: getattr(
    row, "__name__", ""))  # fmt: skip
def test_says_what_it_cannot_run(change: Change, code: str, message: str) -> None:
    if change in (unknown_kernel, not_given, constant_output):
        pytest.importorskip("torch", reason="PyTorch, which has the kernels, is not installed")
    known: dict[str, Any] = {}

    def noting(program: Record) -> None:
        known["count"] = len(plan(program)["values"])
        offset = value(program, 0)["allocation_info"]["memory_offset_low"]
        known["end"] = offset + 1000
        change(program)

    data = changed(noting)
    with pytest.raises(MizzenError) as error:
        artifact_of(data, "net.pte")
    assert error.value.diagnostic.message == message.format(**known)
    assert error.value.diagnostic.code == code
    assert error.value.diagnostic.help


@NEEDS_TORCH
@pytest.mark.parametrize(
    "name", ["aten::from_file", "load_library::x", "aten", "aten::__class__", "os::system", ""]
)
def test_nothing_but_operators_on_tensors_is_called(name: str) -> None:
    def change(program: Record) -> None:
        plan(program)["operators"][2] = {"name": name, "overload": "mro"}

    with pytest.raises(MizzenError) as error:
        artifact_of(changed(change), "net.pte")
    assert error.value.diagnostic.code == "E182"


@NEEDS_TORCH
def test_says_what_pytorch_says_of_a_kernel() -> None:
    def wrong_window(program: Record) -> None:
        (pool,) = [
            row["instr_args"]
            for row in instructions(program)
            if row["instr_args"].table == "KernelCall" and len(row["instr_args"].fields["args"]) > 8
            and row["instr_args"].fields["op_index"] == 2
        ]  # fmt: skip
        place = pool.fields["args"][1]
        plan(program)["values"][place]["val"] = Member("IntList", {"items": []})

    artifact = artifact_of(changed(wrong_window), "net.pte")
    with pytest.raises(MizzenError) as error:
        artifact.run(np.zeros((1, 1, 25, 10), np.float32))
    assert error.value.diagnostic.code == "E730"
    assert error.value.diagnostic.message.startswith(
        "PyTorch must compute aten::avg_pool2d.out, but says: "
    )


@NEEDS_TORCH
def test_a_value_that_was_moved_is_where_it_went() -> None:
    def moved(program: Record) -> None:
        rows = plan(program)["values"]
        output = int(plan(program)["outputs"][0])
        rows.append({"val": Member("Null", {})})
        rows[-1] = {"val": rows[output]["val"]}
        instructions(program).append(
            instruction("MoveCall", move_from=output, move_to=len(rows) - 1)
        )
        instructions(program).append(instruction("FreeCall", value_index=0))
        plan(program)["outputs"] = [len(rows) - 1]

    image = np.random.default_rng(0).normal(size=(1, 1, 25, 10)).astype(np.float32)
    wanted = artifact_of(changed(lambda _: None), "net.pte").run(image)
    np.testing.assert_array_equal(artifact_of(changed(moved), "net.pte").run(image), wanted)


@NEEDS_TORCH
def test_dimensions_lie_in_memory_as_their_order_says() -> None:
    def last(program: Record) -> None:
        # What the delegate takes stays the same bytes: the input's order is what changes.
        for place in (0, 1):
            value(program, place)["sizes"] = [1, 10, 1, 25]
            value(program, place)["dim_order"] = [0, 2, 3, 1]

    image = np.random.default_rng(0).normal(size=(2, 1, 25, 10)).astype(np.float32)
    wanted = artifact_of(changed(lambda _: None), "net.pte").run(image)
    artifact = artifact_of(changed(last), "net.pte")
    assert artifact.inputs[0].shape == (1, 10, 1, 25)
    np.testing.assert_array_equal(artifact.run(image.transpose(0, 3, 1, 2)), wanted)
