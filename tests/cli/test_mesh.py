"""The verbs of `mizzen mesh`, from a network to its programs, their check, execution and page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mizzen.cli.main import main
from mizzen.mesh.program import Compute, read_program

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
PROGRAM = "digits.mesh"


@pytest.fixture
def mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the programs of the digits network on sixteen elements."""
    monkeypatch.chdir(tmp_path)
    network = str(DIGITS / "digits.tflite")
    words = ["mesh", "map", network, "--machine", "grid4x4", "--replicas", "1", "-o", PROGRAM]
    assert main([*words, "--quiet"]) == 0
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("mapped")
def test_what_is_mapped_keeps_all_rules_and_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "mesh", "check", PROGRAM)["findings"] == []
    found = said(capsys, "mesh", "run", PROGRAM, "--compare")
    assert found["inexact_tensors"] == 0
    assert found["images"] == 4


def test_floats_are_quantised_and_give_what_the_network_gives(
    mapped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = np.load(DIGITS / "six.npy")
    np.save(mapped / "two.npy", np.concatenate([image, image]))
    found = said(capsys, "mesh", "run", PROGRAM, "--input", "two.npy")
    (path,) = found["outputs"]  # pyright: ignore[reportGeneralTypeIssues] - a list in the document
    outputs = np.load(str(path))
    assert found["images"] == len(outputs) == 2
    assert outputs.reshape(2, -1).argmax(axis=1).tolist() == [6, 6]


def test_a_rule_that_is_broken_is_told(
    mapped: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from mizzen.mesh.program import read_program, write_program

    program = read_program(mapped / PROGRAM)
    write_program(replace(program, elements=program.elements[1:]), mapped / "less.mesh")
    assert main(["mesh", "check", "less.mesh"]) == 1
    captured = capsys.readouterr()
    assert "error[E508]: " in captured.err
    assert "findings" in captured.out


def test_the_page_and_the_trace_are_written(
    mapped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(capsys, "mesh", "report", PROGRAM, "--trace", "trace.json")
    assert (mapped / "digits.html").stat().st_size == found["bytes"]
    assert json.loads((mapped / "trace.json").read_text())["traceEvents"]
    assert found["simulated_images_per_s"] == pytest.approx(found["images_per_s"], rel=0.05)


@pytest.mark.usefixtures("mapped")
def test_an_element_is_listed_and_exported(capsys: pytest.CaptureFixture[str]) -> None:
    listed = said(capsys, "mesh", "inspect", PROGRAM)
    assert "for each image" in str(listed["listing"])
    exported = said(capsys, "mesh", "export", PROGRAM, "--output-dir", "element")
    assert exported["element"] == listed["element"]
    assert Path("element/Makefile").is_file()
    capsys.readouterr()
    assert main(["mesh", "inspect", PROGRAM, "--element", "99"]) == 2
    assert "error[E560]: --element must be one of " in capsys.readouterr().err


@pytest.mark.usefixtures("mapped")
def test_layers_are_put_where_a_person_says(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hand.toml").write_text(
        "format = 1\n[[assign]]\nlayers = [0, 1]\nelements = [3, 4, 5]\n"
        "[[assign]]\nlayers = [2]\nelements = [9]\n"
    )
    words = ["mesh", "map", str(DIGITS / "digits.tflite"), "--machine", "grid4x4"]
    found = said(capsys, *words, "--assignment", "hand.toml", "-o", "hand.mesh")
    assert found["replicas"] == 1
    assert said(capsys, "mesh", "check", "hand.mesh")["findings"] == []
    placed = {
        row.kernel.layer: element.element
        for element in read_program(Path("hand.mesh")).elements
        for row in element.instructions
        if isinstance(row, Compute)
    }
    assert placed[2] == 9
    assert {placed[0], placed[1]} <= {3, 4, 5}


@pytest.mark.usefixtures("mapped")
def test_tiles_go_to_a_mapper_of_ones_own_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mesh", "map", str(DIGITS / "digits.tflite"), "--machine", "grid4x4"]
    words += ["--replicas", "1"]
    said(capsys, *words, "--tile-graph", "tiles.json", "-o", "one.mesh")
    said(capsys, *words, "--tile-graph", "tiles.graph", "-o", "one.mesh")
    tiles = json.loads(Path("tiles.json").read_text())["tiles"]
    turned = {"format": 1, "elements": [15 - tile["element"] for tile in tiles]}
    Path("mine.json").write_text(json.dumps(turned))
    said(capsys, *words, "--tiles", "mine.json", "-o", "mine.mesh")
    assert said(capsys, "mesh", "check", "mine.mesh")["findings"] == []
    assert said(capsys, "mesh", "run", "mine.mesh", "--compare")["inexact_tensors"] == 0
    assert Path("tiles.graph").read_text().split("\n")[0].split()[0] == str(len(tiles))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["map", "resnet5", "--machine", "one"],
            "error[E507]: the network must be a file .tflite, .onnx or .pt2, or resnet18, "
            "resnet50, mobilenet-v1, mobilenet-v2, transformer-block, not resnet5\n"
            "  help did you mean resnet50?\n",
        ),
        (
            ["mop"],
            "error[E200]: the command line is wrong: the verb must be map, check, run, report, "
            "inspect, export, not 'mop'\n  help did you mean map?\n",
        ),
        (
            ["map", "resnet18", "--machine", "one", "--dead", "60"],
            "error[E200]: the command line is wrong: argument --dead: must be 0 to 50, and is 60\n"
            "  help mizzen mesh map --help\n",
        ),
        (
            ["check", "x", "--elemnt"],
            "error[E200]: the command line is wrong: mizzen mesh check does not take --elemnt\n"
            "  help mizzen mesh check --help\n",
        ),
    ],
)
def test_wrong_words_are_told(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mesh", *words]) == 2
    assert capsys.readouterr().err == expected


def test_a_network_that_does_not_fit_says_by_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mesh", "map", "resnet50", "--machine", "grid4x4", "--quiet"]) == 2
    assert "error[E510]" in capsys.readouterr().err
