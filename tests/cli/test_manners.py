"""What the command line says beside its answers, and what it does about slips."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.diagnostics import Diagnostic, Severity
from mizzen.graph import DType, Graph, TensorType
from mizzen.ops import Builder
from mizzen.package.tosa import write

Run = Callable[..., tuple[int, str, str]]


def made_of(artifact: Artifact) -> Callable[..., Artifact]:
    return lambda *_: artifact


def test_another_accelerators_artifact_is_not_overwritten_without_a_word(
    here: Path, run: Run
) -> None:
    words = ("compile", "digits.tflite", "--accelerator-config")
    assert "W310" not in run(*words, "ethos-u55-128")[2]
    assert "W310" not in run(*words, "ethos-u55-128")[2]
    status, out, err = run(*words, "ethos-u55-256", "--json")
    path = Path("output") / "digits_vela.tflite"
    assert status == 0
    assert (
        f"warning[W310]: {path} held an artifact for ethos-u55-128, and holds one for "
        "ethos-u55-256 instead\n"
    ) in err
    assert [row["code"] for row in json.loads(out)["diagnostics"]] == ["W310"]


def test_quiet_leaves_what_is_wrong(here: Path, run: Run) -> None:
    assert run("compile", "digits.tflite", "--quiet")[2] == ""
    assert run("compile", "other.tflite", "--quiet")[2].startswith("error[E110]")


def test_a_full_disk_is_no_bug(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run("compile", "digits.tflite")
    sizes = {path: path.stat().st_size for path in Path("output").iterdir()}
    monkeypatch.setattr(os, "fsync", full)
    status, _, err = run("compile", "digits.tflite")
    assert status == 2
    path = Path("output", "digits_vela.tflite")
    assert err.endswith(
        f"error[E207]: {path} must have room for {sizes[path]:,} bytes of "
        f"the {sum(sizes.values()):,} of all files: no space left on device\n"
        "  help make room there, or choose another place\n"
    )
    assert {path: path.stat().st_size for path in Path("output").iterdir()} == sizes


def test_lowering_a_tflite_network_says_which_verb_takes_it(here: Path, run: Run) -> None:
    """Without PyTorch too: nobody must install it to learn that."""
    status, _, err = run("lower", "digits.tflite")
    assert status == 2
    assert err == (
        "error[E164]: digits.tflite must be a program that torch.export.save wrote, and is no "
        "archive\n"
        "  help a .tflite or .tosa file is for `mizzen compile`; a program is written with "
        "torch.export.save(torch.export.export(model, inputs), path)\n"
    )


def test_a_file_that_is_not_there_is_said_before_the_configuration(run: Run) -> None:
    for verb in ("compile", "check"):
        assert run(verb, "nothing.tflite")[2].startswith("error[E110]: nothing.tflite must be")


@pytest.mark.parametrize(
    ("words", "said", "meant"),
    [
        (("complie", "x.tflite"), "not 'complie'", "compile"),
        (("compile", "x", "--acelerator-config", "y"), "does not take", "--accelerator-config"),
        (("run", "x", "--inputs=y"), "mizzen run does not take --inputs=y", "--input"),
    ],
)
def test_what_may_be_meant(run: Run, words: tuple[str, ...], said: str, meant: str) -> None:
    status, _, err = run(*words)
    assert status == 2
    assert said in err
    assert err.endswith(f"  help did you mean {meant}?\n")


def test_an_operator_without_a_form_on_any_npu(run: Run) -> None:
    status, out, _ = run("targets", "--operator", "svdf", "--json")
    assert status == 0
    assert json.loads(out)["npus"] == []
    assert "goes to the CPU" in run("targets", "--operator", "SVDF")[1]


def test_several_files_of_configurations_are_one(here: Path, run: Run) -> None:
    (here / "a.ini").write_text("[Memory_Mode.Mine]\ninherit=Memory_Mode.Shared_Sram\n")
    words = ("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    words += ("--config", "Arm/vela.ini", "--config", "a.ini")
    words += ("--system-config", "Ethos_U55_Deep_Embedded", "--memory-mode", "Mine")
    status, _, err = run(*words)
    assert (status, "Mine" in err) == (0, True)


def test_warnings_of_a_compilation_are_pythons(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mizzen.compiler import compile as compiling

    said = Diagnostic("W307", "MUL is on the CPU", Severity.WARNING)
    made = mizzen.compile("digits.tflite", prove="off")
    assert made.report is not None
    made.report = replace(made.report, diagnostics=(said,))
    monkeypatch.setattr(compiling, "compile_file", made_of(made))
    with pytest.warns(mizzen.MizzenWarning, match="W307.*MUL is on the CPU") as found:
        mizzen.compile("digits.tflite")
    assert found[0].filename == __file__


@pytest.fixture
def doubled(here: Path) -> Path:
    """A TOSA file that adds its input to itself."""
    graph = Graph()
    x = graph.add_input(TensorType((1, 4), DType.INT32), "x")
    graph.set_outputs([Builder(graph)("ADD", x, x)])
    path = here / "doubled.tosa"
    path.write_bytes(write(graph))
    return path


def test_a_tosa_file_is_executed_as_tosa_says(doubled: Path, run: Run) -> None:
    np.save("x.npy", np.array([[1, -2, 3, 1 << 20], [0, 5, 0, 7]]))
    status, out, err = run("run", doubled.name, "--input", "x.npy", "--json")
    assert status == 0
    assert "doubled.tosa, 1 operation" in err
    assert "int64 taken as the integers of int32" in err
    (output,) = json.loads(out)["outputs"]
    assert np.load(output["file"]).tolist() == [[2, -4, 6, 1 << 21], [0, 10, 0, 14]]
    np.save("x.npy", np.full((1, 4), 1 << 30))
    status, _, err = run("run", doubled.name, "--input", "x.npy")
    assert (status, "error[E822]" in err) == (2, True)
    assert run("run", doubled.name, "--input", "x.npy", "--accelerator-config", "y")[0] == 2


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mizzen comp", {"compare", "compile"}),
        ("mizzen run --str", {"--strict"}),
        ("mizzen zzz", {""}),
    ],
)
def test_a_shell_completes(tmp_path: Path, line: str, found: set[str]) -> None:
    """As the script of argcomplete asks: the words come in a file."""
    answer = tmp_path / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_IFS": ",",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [Path(sys.executable).parent / "mizzen"]
    subprocess.run(command, env=os.environ | asked, check=True, capture_output=True)
    assert {word.strip() for word in answer.read_text().split(",")} == found


def test_cliffs_are_those_of_tflite(doubled: Path, run: Run) -> None:
    status, _, err = run("check", doubled, "--cliffs")
    assert status == 2
    assert (
        f"error[E580]: --cliffs must have a .tflite, whose layers can be compiled alone, and "
        f"{doubled} is not one\n"
        "  help the advice below the table of layers holds for every network"
    ) in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("words", [("targets", "--json"), ("targets",), ("check", "--json")])
def test_a_stdout_that_takes_nothing_is_no_bug(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mizzen", *words],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    said = "E200" if words[0] == "check" else "E207"
    assert done.stderr.startswith(f"error[{said}]: ")


@pytest.mark.skipif(os.name == "nt", reason="closing a stream is the shell's, as POSIX has it")
def test_a_closed_stdout_is_no_bug() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m mizzen targets >&-'],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error[E207]: stdout must be open to take the answer, and is closed\n"
        "  help to have no answer, send it to /dev/null\n"
    )
