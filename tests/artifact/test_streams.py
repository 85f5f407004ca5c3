"""Command streams without a network: bare words, a payload, the file of Mesa; their memory."""

from __future__ import annotations

import argparse
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.checking.artifacts import check_artifact
from mizzen.artifact.loading import load_stream
from mizzen.artifact.opening import contents_of_region
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.streams import is_mesa
from mizzen.cli.artifacts import load_artifact
from mizzen.cli.main import main
from mizzen.diagnostics import MizzenError
from mizzen.embedded.conventions import constants_name
from mizzen.embedded.search import Kind, payloads
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
ACCELERATORS = ("ethos-u55-64", "ethos-u65-256", "ethos-u85-256")


@dataclass(frozen=True, eq=False)
class Bare:
    """A compiled network taken apart: its files, and what memory holds before and after it."""

    program: Program
    before: bytes
    after: bytes

    def files(self, folder: Path) -> dict[str, Path]:
        constants = self.program.constants[0].tobytes()
        contents = {
            "commands": self.program.words.tobytes(),
            "coefs": constants,
            "before": self.before,
            "after": self.after,
        }
        paths = {name: folder / f"{name}.bin" for name in contents}
        for name, path in paths.items():
            path.write_bytes(contents[name])
        return paths


@cache
def bare(accelerator: str) -> Bare:
    compiled = mizzen.compile(DIGITS / "digits.tflite", accelerator, prove="off")
    (step,) = compiled.steps
    assert isinstance(step, NpuStep)
    program = step.program
    memory = np.zeros((1, program.region_bytes[1]), np.uint8)
    place = program.inputs[0]
    image = np.load(DIGITS / "images.npy")[0].astype(np.int8).reshape(-1).view(np.uint8)
    memory[0, place.offset : place.offset + place.size_bytes] = image
    before = memory.tobytes()
    fast = {}
    if 2 in program.region_bytes:
        fast[2] = np.zeros((1, program.region_bytes[2]), np.uint8)
    step.simulator.run_in({1: memory, **fast}, 1)
    return Bare(program, before, memory.tobytes())


def mesa(one: Bare) -> bytes:
    """The file as Mesa lays it out."""
    places = (one.program.inputs[0], one.program.outputs[0])
    table = b"".join(
        struct.pack("<3I", 7 + index, place.offset, place.size_bytes)
        for index, place in enumerate(places)
    )
    words, coefs = one.program.words.tobytes(), one.program.constants[0].tobytes()
    sizes = struct.pack("<4Q", len(words), len(coefs), one.program.region_bytes[1], len(table))
    return sizes + table + words + coefs


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_bare_words_give_what_the_network_gives(accelerator: str, tmp_path: Path) -> None:
    one = bare(accelerator)
    paths = one.files(tmp_path)
    memory = ["--region", f"0={paths['coefs']}", "--region", f"1={paths['before']}"]
    asked = [*memory, "--accelerator-config", accelerator, "--expect", f"1={paths['after']}"]
    assert main(["check", "--commands", str(paths["commands"]), *asked]) == 0
    assert main(["run", str(paths["commands"]), *asked]) == 0
    assert main(["inspect", str(paths["commands"]), *asked[:-2]]) == 0
    paths["after"].write_bytes(bytes(len(one.after)))
    assert main(["run", str(paths["commands"]), *asked]) == 1


def test_a_head_names_the_npu(tmp_path: Path) -> None:
    one = bare("ethos-u55-64")
    path = tmp_path / "payload.bin"
    path.write_bytes(driver.build(one.program.words, one.program.hardware))
    regions = {0: one.program.constants[0].tobytes(), 1: one.before}
    artifact = load_stream(path, None, regions)
    assert artifact.accelerator == "ethos-u55-64"
    result = artifact.run(np.frombuffer(one.before, np.uint8))
    assert isinstance(result, np.ndarray)
    assert result.tobytes() == one.after


def test_a_size_is_memory_that_holds_nothing(tmp_path: Path) -> None:
    one = bare("ethos-u55-64")
    path = one.files(tmp_path)["commands"]
    regions = {0: one.program.constants[0].tobytes(), 1: len(one.before)}
    codes = {finding.code for finding in
             check_artifact(load_stream(path, "ethos-u55-64", regions)).findings}  # fmt: skip
    assert codes == {"E674"}


@pytest.mark.parametrize("accelerator", ACCELERATORS[1:])
def test_the_file_of_mesa_names_its_tensors(accelerator: str, tmp_path: Path) -> None:
    one = bare(accelerator)
    path = tmp_path / "net.bin"
    path.write_bytes(mesa(one))
    assert is_mesa(path.read_bytes())
    artifact = mizzen.load(path, accelerator)
    names = {info.name for info in (*artifact.inputs, *artifact.outputs)}
    assert names == {"tensor_7", "tensor_8"}


def refusal(path: Path, accelerator: str | None) -> str:
    with pytest.raises(MizzenError) as caught:
        load_stream(path, accelerator, {1: 64})
    return str(caught.value)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "commands.bin"
    path.write_bytes(bytes(8))
    assert refusal(path, None).startswith(
        "error[E699]: commands.bin does not say which NPU it is for, and one must be named: "
        "ethos-u55-32, "
    )
    path.write_bytes(bytes(7))
    assert refusal(path, "ethos-u65-256") == (
        "error[E699]: commands.bin must be a stream of words of 4 bytes, and has 7 bytes\n"
        "  help give the commands alone, or Mesa's file as it serialised it"
    )


def test_a_head_of_another_npu_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "commands.bin"
    program = bare("ethos-u55-64").program
    path.write_bytes(driver.build(program.words, program.hardware))
    assert refusal(path, "ethos-u85-256") == (
        "error[E113]: commands.bin must be for ethos-u85-256, and its head says ethos-u55-64\n"
        "  help leave --accelerator-config out, or compile the network for it"
    )
    assert load_stream(path, "ethos-u55-64", {1: 64}).accelerator == "ethos-u55-64"


def test_damaged_files_end_in_an_error(tmp_path: Path) -> None:
    one = bare("ethos-u65-256")
    data = mesa(one)
    path = tmp_path / "net.bin"
    rng = np.random.default_rng(3)
    for _ in range(60):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 4):
            changed[at] = int(rng.integers(256))
        path.write_bytes(changed)
        try:
            check_artifact(load_stream(path, "ethos-u65-256", {2: 1 << 16}))
        except MizzenError:
            continue


def test_sizes_of_regions_have_units(tmp_path: Path) -> None:
    one = bare("ethos-u55-64")
    path = one.files(tmp_path)["commands"]
    options = argparse.Namespace(
        region=[(1, "8K")], expect=[], accelerator_config="ethos-u55-64", payload=None
    )
    (step,) = load_artifact(options, path).steps
    assert isinstance(step, NpuStep)
    assert step.program.region_bytes[1] == 8192


def test_a_region_given_by_its_size_is_named_where_nothing_wrote_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = bare("ethos-u55-64")
    paths = {name: str(path) for name, path in one.files(tmp_path).items()}
    words = ["check", "--commands", paths["commands"], "--accelerator-config", "ethos-u55-64"]
    memory = ["--region", f"0={paths['coefs']}", "--region", f"1={len(one.before)}"]
    assert main([*words, *memory]) == 1
    said = (
        "warning[W695]: what is read must have been written before, and what was given by its size "
        "holds nothing: region 1\n"
        "  rule --region\n"
        "  help where the network's input or its constants lie in it, give its contents: "
        "--region N=FILE\n"
    )
    assert said in capsys.readouterr().err
    assert main([*words, *memory[:2], "--region", f"1={paths['before']}"]) == 0
    assert "W695" not in capsys.readouterr().err


def array(name: str, data: bytes) -> str:
    return f"const uint8_t {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"


def payload_of(one: Bare) -> bytes:
    return driver.build(one.program.words, one.program.hardware)


def edge_impulse(one: Bare, folder: Path, constants: bytes | None = None) -> Path:
    """A source with a stream and its constants, as EON writes them."""
    coefs = one.program.constants[0].tobytes() if constants is None else constants
    path = folder / "tflite_learn_1_compiled.cpp"
    text = array("tensor_data9", payload_of(one)) + array("tensor_data10", coefs)
    path.write_text(f"namespace g0 {{\n{text}}};\n")
    return path


def test_constants_of_a_payload_are_found_by_their_names(tmp_path: Path) -> None:
    one = bare("ethos-u55-64")
    source = edge_impulse(one, tmp_path)
    renesas = tmp_path / "sub_0000_command_stream.c"
    renesas.write_text(array("sub_0000_command_stream", payload_of(one)))
    beside = tmp_path / "sub_0000_model_data.c"
    beside.write_text(array("sub_0000_model_data", one.program.constants[0].tobytes()))
    for path in (source, renesas):
        artifact = mizzen.load(path)
        assert artifact.accelerator == "ethos-u55-64"
        assert not check_artifact(artifact).findings
        memory = np.frombuffer(one.before, np.uint8)[: artifact.inputs[0].shape[0]]
        result = np.asarray(artifact.run(memory))
        assert result.tobytes() == one.after[: result.size]
    (found,) = payloads(renesas.read_bytes(), renesas.name)
    assert found.as_dict()["constants"] == "sub_0000_model_data"
    beside.unlink()
    with pytest.raises(MizzenError) as caught:
        mizzen.load(renesas)
    size = one.program.constants[0].nbytes
    assert str(caught.value) == (
        "error[E185]: sub_0000_command_stream.c: the constants of the command stream, "
        f"{size} bytes of region 0, must be given, and no array sub_0000_model_data is here\n"
        f"  help --region 0=FILE; to list commands its size is enough: --region 0={size}"
    )
    with pytest.raises(MizzenError, match=r"E186.* those of tensor_data10, which has 64 bytes"):
        mizzen.load(edge_impulse(one, tmp_path, bytes(64)))


def test_names_of_arrays_in_cplusplus_objects() -> None:
    name = "_ZN12_GLOBAL__N_12g0L12tensor_data9E"
    assert constants_name(name) == "_ZN12_GLOBAL__N_12g0L13tensor_data10E"
    assert constants_name("net_command_stream") == "net_model_data"
    assert constants_name("model") is None


def test_a_payload_in_an_image_takes_its_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = bare("ethos-u55-64")
    image, coefs = tmp_path / "fw.bin", tmp_path / "coefs.h"
    head = b"COP1 is only a word here. "
    image.write_bytes(head + payload_of(one) + b"more" * 9 + payload_of(one))
    coefs.write_text(array("coefs", one.program.constants[0].tobytes()))
    first = payloads(image.read_bytes(), image.name)[0]
    assert (first.kind, first.offset, first.accelerator) == (
        Kind.STREAM, len(head), "ethos-u55-64",
    )  # fmt: skip
    (before, after) = (one.files(tmp_path)[name] for name in ("before", "after"))
    memory = ["--region", f"0={coefs}", "--region", f"1={before}", "--expect", f"1={after}"]
    assert main(["run", str(image), "--payload", "1", *memory]) == 0
    alone = ["--payload", "1", "--region", "0=64K"]
    assert main(["inspect", str(image), *alone, "--hazards"]) == 0
    assert "0 hazards" in capsys.readouterr().out
    assert main(["check", "--artifact", str(image), *alone]) == 1
    assert "W695" in capsys.readouterr().err
    assert main(["inspect", str(image)]) == 0
    assert main(["check", "--artifact", str(image), "--payload", "2", *memory]) == 2
    coefs.write_text(array("a", bytes(64)) + array("b", bytes(64)))
    with pytest.raises(MizzenError) as caught:
        contents_of_region(coefs)
    assert str(caught.value) == (
        "error[E187]: coefs.h must have one array of bytes, which a region starts with, and has 2: "
        "a, b\n  help give the bytes as a file of their own"
    )
    image.write_bytes(head + (DIGITS / "digits.tflite").read_bytes())
    with pytest.raises(MizzenError, match=r"E188.* network with its memory \(TFLite\)"):
        load_stream(image, None, {0: 64})


def test_dumps_of_mesa_are_checked_as_they_are(tmp_path: Path) -> None:
    one = bare("ethos-u65-256")
    names = ("mesa-cmdstream-000-000", "mesa-coefs", "mesa-io-before", "mesa-io-after")
    contents = (one.program.words.tobytes(), one.program.constants[0].tobytes(),
                one.before, one.after)  # fmt: skip
    paths = [tmp_path / f"{name}.bin" for name in names]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    stream, coefs, before, after = map(str, paths)
    words = [stream, "--accelerator-config", "ethos-u65-256", "--region", f"0={coefs}"]
    words += ["--region", f"1={before}", "--expect", f"1={after}"]
    assert main(["check", "--artifact", *words]) == 0
    assert main(["run", *words]) == 0
    paths[3].write_bytes(one.before)
    assert main(["check", "--artifact", *words]) == 1
