"""Files of exported programs that would make PyTorch execute what they say, or take memory."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

import torch
from torch import nn

from mizzen.archives import packed, unpacked
from mizzen.diagnostics import MizzenError
from mizzen.frontends.torch.exported_file import read_exported

Change = Callable[[dict[str, Any], dict[str, bytes]], None]
PROGRAM = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"


class Network(nn.Module):
    """A parameter, a constant, an operator with numbers as arguments, and named inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.linear(x) + torch.full((3,), 0.5)
        return {"y": y * scale, "z": y + torch.tensor([1.0, 2.0, 3.0])}


@pytest.fixture(scope="module")
def file() -> bytes:
    given = (torch.randn(2, 4),), {"scale": torch.ones(3)}
    exported = torch.export.export(Network().eval(), given[0], given[1])
    written = io.BytesIO()
    torch.export.save(exported, written)
    return written.getvalue()


def changed(file: bytes, change: Change) -> bytes:
    """Return the file with its description and members changed."""
    members = {name.partition("/")[2]: held for name, held in unpacked(file).items()}
    program = json.loads(members[PROGRAM])
    change(program, members)
    members[PROGRAM] = json.dumps(program).encode()
    return packed({f"x/{name}": held for name, held in members.items()})


def error_of(data: bytes) -> str:
    with pytest.raises(MizzenError) as caught:
        read_exported(data, "net.pt2")
    return str(caught.value)


class Payload:
    """Pickled, it makes the folder that it names when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


def payload(path: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save(Payload(path), buffer)
    return buffer.getvalue()


def test_what_is_harmless_is_read(file: bytes) -> None:
    exported = read_exported(file, "net.pt2")
    x, scale = torch.randn(2, 4), torch.randn(3)
    theirs = torch.export.load(io.BytesIO(file)).module()(x, scale=scale)
    ours = exported.module(check_guards=False)(x, scale=scale)
    assert {key: row.tolist() for key, row in ours.items()} == {
        key: row.tolist() for key, row in theirs.items()
    }


def test_sample_inputs_are_not_read(file: bytes, tmp_path: Path) -> None:
    def change(_: Any, members: dict[str, bytes]) -> None:
        members["data/sample_inputs/model.pt"] = payload(tmp_path / "executed")

    read_exported(changed(file, change), "net.pt2")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("member", ["data/weights/model.pt", "data/constants/model.pt"])
def test_pickles_of_all_tensors_are_not_read(file: bytes, tmp_path: Path, member: str) -> None:
    def change(_: Any, members: dict[str, bytes]) -> None:
        members[member] = payload(tmp_path / "executed")

    read_exported(changed(file, change), "net.pt2")
    assert not (tmp_path / "executed").exists()


def test_compiled_code_is_not_loaded(file: bytes) -> None:
    def change(_: Any, members: dict[str, bytes]) -> None:
        members["data/aotinductor/model/model.so"] = b"\x7fELF"
        members["data/aotinductor/model/metadata.json"] = b"{}"

    read_exported(changed(file, change), "net.pt2")


def test_the_old_form_is_refused(tmp_path: Path) -> None:
    names = ("serialized_state_dict", "serialized_constants", "serialized_example_inputs")
    old = {"version": b"8.20", "serialized_exported_program.json": b"{}"}
    old |= {f"{name}.pt": payload(tmp_path / "executed") for name in names}
    assert error_of(packed(old)).startswith(
        "error[E164]: net.pt2 must be a program that torch.export.save wrote: there is no "
        "models/model.json in it"
    )
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("config", "prefix"), [(WEIGHTS, "weight_"), (CONSTANTS, "tensor_"), (CONSTANTS, "opaque_obj_"),
                           (CONSTANTS, "custom_obj_")]
)  # fmt: skip
def test_pickled_objects_are_refused(file: bytes, tmp_path: Path, config: str, prefix: str) -> None:
    def change(_: Any, members: dict[str, bytes]) -> None:
        row = {"path_name": f"{prefix}77", "is_param": False, "use_pickle": True,
               "tensor_meta": None}  # fmt: skip
        members[config] = json.dumps({"config": {"p": row}}).encode()
        folder = config.rpartition("/")[0]
        members[f"{folder}/{prefix}77"] = pickle.dumps(Payload(tmp_path / "executed"))

    assert error_of(changed(file, change)) == (
        "error[E169]: a file's program must be tensors and operators on them, and it has an object "
        "of a Python class, which only a pickle can hold\n"
        "  at   net.pt2\n"
        "  help a file from elsewhere may do harm, and nothing of it was executed; to compile a "
        "program of your own, give it to mizzen.torch in memory"
    )
    assert not (tmp_path / "executed").exists()


def graph(program: dict[str, Any]) -> dict[str, Any]:
    return program["graph_module"]["graph"]


TARGETS = [
    "torch.os.system",
    "torch.hub.load",
    "torch.ops.load_library",
    "torch.ops.aten.from_file.default",
    "torch.ops.aten.save.default",
    "torch.ops.aten.set_.source_Tensor",
    "torch.ops.profiler._record_function_enter.default",
    "torch.ops.higher_order.call_torchbind",
    "torch.ops.aten.add.__init__.__globals__",
    "_operator.methodcaller",
    "math.factorial",
    "#evil:call",
    "torch.ops.aten.relu.default\n",
]


@pytest.mark.parametrize("target", TARGETS)
def test_only_operators_on_tensors_are_called(file: bytes, target: str) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        graph(program)["nodes"][0]["target"] = target

    found = error_of(changed(file, change))
    assert f"it calls {target!a}, which is no operator on tensors" in found
    assert found.startswith("error[E169]")


def rename(program: Any, old: str, new: str) -> Any:
    """Rename a value wherever it occurs."""
    return json.loads(json.dumps(program).replace(json.dumps(old), json.dumps(new)))


CODE = ["x): __import__('os').mkdir('EXECUTED')  #", "x\n", "lambda", "a.b", "x y", "\u0445"]


@pytest.mark.parametrize("name", CODE)
def test_names_are_names(file: bytes, name: str) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        program |= rename(copy.deepcopy(program), "linear", name)

    found = error_of(changed(file, change))
    assert found.startswith(
        "error[E169]: a file's program must be tensors and operators on them, and a name is "
    )


def test_keys_of_arguments_are_names(file: bytes) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        (root, *_rest) = program["graph_module"]["module_call_graph"]
        text = root["signature"]["in_spec"]
        assert '\\"scale\\"' in text
        root["signature"]["in_spec"] = text.replace('\\"scale\\"', '\\"s): exit()#\\"')

    assert "a name is 's): exit()#', which is no name of Python's" in error_of(
        changed(file, change)
    )


@pytest.mark.parametrize("kind", ["collections.defaultdict", "os.system", "torch.Size"])
def test_arguments_are_plain(file: bytes, kind: str) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        (root, *_rest) = program["graph_module"]["module_call_graph"]
        node = {"type": kind, "context": '{"default_factory_module": "os"}', "children_spec": []}
        root["signature"]["out_spec"] = json.dumps([1, node])

    assert f"an argument is a '{kind}'" in error_of(changed(file, change))


def test_keys_of_dictionaries_name_no_enumerations(file: bytes) -> None:
    """PyTorch imports the module that an enumeration's key names."""

    def change(program: dict[str, Any], _: Any) -> None:
        (root, *_rest) = program["graph_module"]["module_call_graph"]
        context = json.dumps([{"__enum__": True, "fqn": "antigravity:X", "name": "Y"}])
        node = {"type": "builtins.dict", "context": context, "children_spec": []}
        root["signature"]["out_spec"] = json.dumps([1, node])

    assert "a key of a dictionary is {'__enum__'" in error_of(changed(file, change))


EXPRESSIONS = ["__import__('os').mkdir('EXECUTED')", "9**9**9", "s0*2", "exit()"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_sizes_are_not_evaluated(
    file: bytes, expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def change(program: dict[str, Any], _: Any) -> None:
        size = {"as_expr": {"expr_str": expression, "hint": {"as_int": 2}}}
        graph(program)["tensor_values"]["linear"]["sizes"][0] = size

    assert error_of(changed(file, change)).startswith(
        f"error[E160]: every shape must be static, and this one is {expression!a}\n"
    )
    assert not list(tmp_path.iterdir())


def test_code_of_guards_is_dropped(
    file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def change(program: dict[str, Any], _: Any) -> None:
        program["guards_code"] = ["__import__('os').mkdir('executed') is None"]

    exported = read_exported(changed(file, change), "net.pt2")
    exported.module()(torch.randn(2, 4), scale=torch.ones(3))
    assert not list(tmp_path.iterdir())


def of_weights(key: str, value: Any) -> Change:
    def change(_: Any, members: dict[str, bytes]) -> None:
        config = json.loads(members[WEIGHTS])
        config["config"]["linear.bias"]["tensor_meta"][key] = value
        members[WEIGHTS] = json.dumps(config).encode()

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            of_weights("sizes", [{"as_int": 1 << 40}]),
            "[E169]: a file's program must be tensors and",
        ),
        (of_weights("sizes", [{"as_int": 1 << 70}, {"as_int": 0}]), "[E164]"),
        (of_weights("sizes", [{"as_int": -1}]), "an extent is -1"),
        (of_weights("sizes", [{"as_int": 5}]), "[E164]"),
        (of_weights("storage_offset", {"as_int": 1 << 40}), "[E164]"),
        (of_weights("strides", [{"as_int": 1 << 40}]), "[E164]"),
        (of_weights("dtype", 99), "[E164]"),
    ],
)
def test_tensors_lie_in_their_bytes(file: bytes, change: Change, text: str) -> None:
    assert text in error_of(changed(file, change))


def test_strides_of_zero_are_counted(file: bytes) -> None:
    """A GiB of one number takes no room in a file, and would when it is written out."""

    def change(_: Any, members: dict[str, bytes]) -> None:
        config = json.loads(members[WEIGHTS])
        meta = config["config"]["linear.bias"]["tensor_meta"]
        meta |= {"sizes": [{"as_int": 1 << 28}], "strides": [{"as_int": 0}]}
        members[WEIGHTS] = json.dumps(config).encode()

    assert "its tensors have 1073741" in error_of(changed(file, change))


def test_sizes_in_arguments_are_the_shapes(file: bytes) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        (node,) = [row for row in graph(program)["nodes"] if "full" in row["target"]]
        node["inputs"][0]["arg"] = {"as_ints": [1 << 40]}

    assert f"full has shape [{1 << 40}], not [3]" in error_of(changed(file, change))


def test_a_range_that_nothing_has_changes_nothing(file: bytes) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        (node,) = [row for row in graph(program)["nodes"] if "full" in row["target"]]
        node["inputs"][0]["arg"] = {"as_ints": [1 << 40]}
        program["range_constraints"] = {"s0": {"min_val": 2, "max_val": 9}}

    assert f"full has shape [{1 << 40}], not [3]" in error_of(changed(file, change))


def test_tensors_between_operators_are_bounded(file: bytes) -> None:
    def change(program: dict[str, Any], _: Any) -> None:
        (node,) = [row for row in graph(program)["nodes"] if "full" in row["target"]]
        node["inputs"][0]["arg"] = {"as_ints": [1 << 40]}
        graph(program)["tensor_values"]["full"]["sizes"] = [{"as_int": 1 << 40}]

    assert "tensor full has 4398046511104 bytes, more than the 1073741824" in error_of(
        changed(file, change)
    )


def test_archives_that_unpack_to_too_much() -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/models/model.json", bytes(1 << 28))
    assert "must unpack to at most" in error_of(bomb.getvalue())


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", "[]", '{"graph_module": 3}', "\xff", "NaN"])
def test_other_descriptions_are_refused(file: bytes, text: str) -> None:
    members = unpacked(file)
    name = next(key for key in members if key.endswith(PROGRAM))
    assert error_of(packed({**members, name: text.encode("latin-1")})).startswith("error[E164]")
