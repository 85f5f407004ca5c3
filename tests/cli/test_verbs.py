"""Verbs on the network of the digits example: their answers, their refusals, what they write."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.steps import NpuStep

Run = Callable[..., tuple[int, str, str]]
EXECUTED = "  run          64 inferences, executed\n"
NOT_KNOWN = "  not checked  weights, scales and tables against the network (compare MODEL\n" + (
    " " * 15 + "--artifact); overflow on other inputs (run)\n"
)


@pytest.fixture
def artifact(here: Path, run: Run) -> Path:
    """The example compiled for ethos-u55-128."""
    status, _, _ = run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    assert status == 0
    return here / "output" / "digits_vela.tflite"


def document(out: str) -> dict[str, Any]:
    """Parse stdout, which must be one JSON document and nothing else."""
    return json.loads(out)


def test_names_of_files_that_are_no_text(here: Path, run: Run) -> None:
    """A file may have any bytes as its name."""
    name = os.fsdecode(b"caf\xe9")
    shutil.copy(here / "digits.tflite", here / f"{name}.tflite")
    assert run("compile", f"{name}.tflite", "--output-dir", here)[0] == 0
    assert (here / f"{name}_vela.tflite").is_file()
    (summary,) = here.glob("*_summary_*.csv")
    assert b",caf\xe9," in summary.read_bytes()
    assert run("inspect", here / f"{name}_vela.tflite", "--json")[0] == 0


def test_compile_writes_artifact_and_report(here: Path, run: Run) -> None:
    status, out, err = run("compile", "digits.tflite", "--output-dir", "a/b")
    assert status == 0
    assert sorted(path.name for path in (here / "a/b").iterdir()) == [
        "digits_summary_Ethos_U55_High_End_Embedded.csv",
        "digits_vela.json",
        "digits_vela.tflite",
    ]
    assert "  on the NPU  8 of 8 operators, 100 % of 105,216 MACs\n" in out
    assert err == (
        "  accelerator  ethos-u55-256 (default), optimise Performance\n"
        "  system       Ethos_U55_High_End_Embedded (default)\n"
        "  memory mode  Shared_Sram (default)\n"
        "  from         Arm/vela.ini\n"
    )


def test_compile_takes_underscores_and_sizes(here: Path, run: Run) -> None:
    status, _, err = run(
        "compile",
        "digits.tflite",
        "--accelerator_config=ethos-u65-256",
        "--system_config",
        "Ethos_U65_Mid_End",
        "--memory_mode=Dedicated_Sram",
        "--arena_cache_size=128K",
        "--optimise",
        "Size",
        "--ignore_ops",
        "softmax,MAX_POOL_2D",
    )
    assert status == 0
    assert err == (
        "  accelerator  ethos-u65-256, optimise Size\n"
        "  system       Ethos_U65_Mid_End\n"
        "  memory mode  Dedicated_Sram\n"
        "  arena cache  128.0 KiB\n"
        "  from         Arm/vela.ini\n"
        "  on the CPU   SOFTMAX, MAX_POOL_2D\n"
    )


def test_compile_as_json(here: Path, run: Run) -> None:
    status, out, _ = run("compile", "digits.tflite", "--json")
    answer = document(out)
    assert status == 0
    assert answer["holds"] is True
    assert answer["artifact"] == "output/digits_vela.tflite"
    assert answer["configuration"]["accelerator"] == "ethos-u55-256"
    (accelerator,) = [
        row for row in answer["configuration"]["settings"] if row["name"] == "accelerator"
    ]
    assert accelerator["source"] == "default"
    assert [row["kind"] for row in answer["operators"]][-1] == "SOFTMAX"
    assert answer["totals"]["operators_on_npu"] == 8
    assert "origins" not in answer


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--sram-budget", "1K"], "error[E402]: the network may use 1024 bytes of SRAM, but "),
        (
            ["--max-cpu-ops", "0", "--ignore-ops", "SOFTMAX"],
            "error[E401]: at most 0 of 8 operators may be on the CPU, but 1 ",
        ),
    ],
)
def test_a_condition_that_does_not_hold_gives_1(
    words: list[str], text: str, here: Path, run: Run
) -> None:
    status, out, err = run("compile", "digits.tflite", *words, "--json")
    assert status == 1
    assert text in err
    assert document(out)["holds"] is False
    assert len(document(out)["failures"]) == 1
    assert (here / "output" / "digits_vela.tflite").is_file()


@pytest.mark.parametrize(
    "words", [["--sram-budget", "1M"], ["--max-cpu-ops", "1", "--ignore-ops", "SOFTMAX"]]
)
def test_a_condition_that_holds_gives_0(words: list[str], here: Path, run: Run) -> None:
    assert run("compile", "digits.tflite", *words)[0] == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["compile", "missing.tflite"], "E110"),
        (["compile", "labels.npy"], "E1"),
        (["compile", "digits.tflite", "--accelerator-config", "ethos-u55-100"], "E210"),
        (["compile", "digits.tflite", "--system-config", "X"], "E211"),
        (["compile", "digits.tflite", "--memory-mode", "Dedicated_Sram"], "E218"),
        (["compile", "digits.tflite", "--config", "missing.ini"], "E2"),
        (["compile", "digits.tflite", "--optimise", "Both"], "E220"),
        (["compile", "digits.tflite", "--arena-cache-size", "much"], "E200"),
        (["compile", "digits.tflite", "--max-cpu-ops", "-1"], "E200"),
        (["compile", "digits.tflite", "--output-dir", "labels.npy"], "E201"),
        (["run", "missing.tflite"], "E110"),
        (["run", "labels.npy"], "E1"),
        (["inspect", "labels.npy"], "E1"),
        (["targets", "--operator", "CONV2D"], "E204"),
    ],
)
def test_wrong_input_gives_2_and_one_document(
    words: list[str], code: str, here: Path, run: Run
) -> None:
    status, out, err = run(*words, "--json")
    assert status == 2
    assert document(out)["error"]["code"].startswith(code)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("accelerator", "system", "mode"),
    [
        ("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
        ("ethos-u65-512", "Ethos_U65_Mid_End", "Dedicated_Sram_256KB"),
        ("ethos-u65-256", "Ethos_U65_Embedded", "Sram_Only"),
    ],
)
def test_the_summary_is_velas_with_more_columns(
    accelerator: str, system: str, mode: str, here: Path, run: Run
) -> None:
    words = ["--accelerator-config", accelerator, "--system-config", system, "--memory-mode", mode]
    assert run("compile", "digits.tflite", *words, "--generator", "vela")[0] == 0
    vela = str(Path(sys.executable).parent / "vela")
    theirs = ["digits.tflite", *words, "--config", "Arm/vela.ini", "--output-dir", "vela"]
    subprocess.run([vela, *theirs], check=True, capture_output=True)
    name = f"digits_summary_{system}.csv"
    rows, expected = (
        list(csv.reader((here / folder / name).read_text().splitlines()))
        for folder in ("output", "vela")
    )
    columns = len(expected[0])
    assert rows[0][:columns] == expected[0]
    differing = [
        (column, value, other)
        for column, value, other in zip(*expected, rows[1], strict=False)
        if not equal(value, other) and column not in TIMING
    ]
    assert not differing
    ours = dict(zip(*rows, strict=True))
    report = json.loads((here / "output" / "digits_vela.json").read_text())
    assert int(ours["cycles_total"]) == report["cycles"]
    assert int(ours["cycles_npu"]) == report["compute_cycles"]
    assert equal(ours["inferences_per_second"], str(report["inferences_per_second"]))
    assert rows[0][columns:] == [
        "operators_on_npu",
        "operators_on_cpu",
        "model_macs",
        "model_macs_on_npu",
    ]


TIMING = {"inferences_per_second", "inference_time", "nn_tops", "cycles_npu", "cycles_total"}
"""Columns that have the timing model's figures, as everything else does; Vela's has its own."""


def equal(text: str, other: str) -> bool:
    """Whether two values are the same text, or the same number but for its last digits."""
    try:
        return math.isclose(float(text), float(other), rel_tol=1e-12)
    except ValueError:
        return text == other


def test_check_lists_every_operator(here: Path, run: Run) -> None:
    status, out, _ = run("check", "digits.tflite", "--accelerator-config", "ethos-u55-128")
    assert status == 0
    lines = out.partition("What would")[0].splitlines()
    assert [line.split()[1] for line in lines if line[2:3].isdigit()] == [
        "CONV_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "CONV_2D",
        "MAX_POOL_2D",
        "RESHAPE",
        "FULLY_CONNECTED",
        "SOFTMAX",
    ]
    assert not (here / "output").exists()


def test_check_sorts_layers(here: Path, run: Run) -> None:
    words = ("check", "digits.tflite", "--accelerator-config", "ethos-u55-128", "--json")
    _, plain, _ = run(*words)
    _, ordered, _ = run(*words, "--sort", "cycles")
    rows = json.loads(ordered)["layers"]
    cycles = [row["cycles"] for row in rows]
    assert cycles == sorted(cycles, reverse=True)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    in_order = json.loads(plain)["layers"]
    assert sorted(rows, key=in_order.index) == in_order


def test_check_compiles_neighbours(here: Path, run: Run) -> None:
    status, out, _ = run("check", "digits.tflite", "--accelerator-config", "ethos-u55-128",
                         "--cliffs", "--json")  # fmt: skip
    assert status == 0
    found = json.loads(out)["cliffs"]
    assert {(row["index"], row["axis"]) for row in found} >= {(1, "output channels")}
    (own,) = [row for row in found if (row["index"], row["axis"]) == (1, "output channels")]
    assert [row["channels"] for row in own["neighbours"]] == [16, 24, 31, 32, 33]


def test_check_tells_why_an_operator_is_on_the_cpu(here: Path, run: Run) -> None:
    status, out, err = run("check", "digits.tflite", "--ignore-ops", "SOFTMAX")
    assert status == 1
    assert out.endswith(
        "On the CPU\n"
        '  operator 7 SOFTMAX -> "probabilities"\n'
        "    why   every SOFTMAX was to stay on the CPU\n"
        "    rule  --ignore-ops\n"
        "    help  leave SOFTMAX out of the operators to ignore\n"
    )
    assert "error[E401]: at most 0 of 8 operators may be on the CPU, but 1 " in err


def test_check_allows_what_it_is_told_to(here: Path, run: Run) -> None:
    words = ("--ignore-ops", "SOFTMAX", "--max-cpu-ops", "1", "--json")
    status, out, _ = run("check", "digits.tflite", *words)
    answer = document(out)
    assert status == 0
    assert answer["holds"] is True
    assert answer["operators"][7]["region"] == "CPU"
    assert answer["operators"][7]["reasons"][0]["source"] == "--ignore-ops"


def test_run_writes_outputs_that_classify_the_images(artifact: Path, here: Path, run: Run) -> None:
    status, out, err = run("run", artifact, "--input", "images.npy")
    assert status == 0
    assert out.startswith("100 inferences in ")
    assert "  accelerator  ethos-u55-128\n" in err
    probabilities = np.load(here / "output" / "probabilities.npy")
    assert probabilities.shape == (100, 10)
    assert probabilities.dtype == np.int8
    assert (probabilities.argmax(axis=1) == np.load("labels.npy")).mean() >= 0.97


def test_run_as_json(artifact: Path, here: Path, run: Run) -> None:
    words = ("--input", "image=images.npy", "--output-dir", "out", "--json")
    status, out, _ = run("run", artifact, *words)
    answer = document(out)
    assert status == 0
    assert answer["inferences"] == 100
    assert answer["outputs"][0]["file"] == "out/probabilities.npy"
    assert answer["outputs"][0]["scale"] == [1 / 256]
    assert (here / "out" / "probabilities.npy").is_file()


def test_run_takes_one_image_in_the_models_own_shape(artifact: Path, here: Path, run: Run) -> None:
    np.save("one.npy", np.load("images.npy")[:1])
    assert run("run", artifact, "--input", "one.npy")[1].startswith("1 inference in ")
    assert np.load(here / "output" / "probabilities.npy").shape == (1, 10)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], "E202"),
        (["--input", "images.npy", "images.npy"], "E202"),
        (["--input", "other=images.npy"], "E203"),
        (["--input", "missing.npy"], "E203"),
        (["--input", "digits.tflite"], "E203"),
        (["--input", "labels.npy"], "E712"),
        (["--input", "images.npy", "--accelerator-config", "ethos-u55-256"], "E113"),
        (["--input", "images.npy", "--output-dir", "images.npy"], "E201"),
    ],
)
def test_run_refuses(words: list[str], code: str, artifact: Path, run: Run) -> None:
    status, out, _ = run("run", artifact, *words, "--json")
    assert status == 2
    assert document(out)["error"]["code"] == code


def test_a_header_that_claims_terabytes_is_refused_at_once(artifact: Path, run: Run) -> None:
    with open("huge.npy", "wb") as file:
        header = {"descr": "|i1", "fortran_order": False, "shape": (1 << 40, 8, 8, 1)}
        np.lib.format.write_array_header_1_0(file, header)
    status, _, err = run("run", artifact, "--input", "huge.npy")
    assert status == 2
    assert "error[E203]: huge.npy must be a NumPy file: " in err


def test_pickled_objects_are_not_executed(artifact: Path, run: Run) -> None:
    np.save("objects.npy", np.array([{"a": 1}], dtype=object))
    assert run("run", artifact, "--input", "objects.npy")[0] == 2


def test_run_compares_equal_to_the_kernels(artifact: Path, here: Path, run: Run) -> None:
    from tflite_micro.python.tflite_micro import runtime

    assert run("run", artifact, "--input", "images.npy")[0] == 0
    kernels = runtime.Interpreter.from_file("digits.tflite", arena_size=1 << 20)
    on_npu = np.load(here / "output" / "probabilities.npy")
    for image, output in zip(np.load("images.npy"), on_npu, strict=True):
        kernels.set_input(image[None], 0)
        kernels.invoke()
        assert (kernels.get_output(0)[0] == output).all()


def test_inspect_shows_hardware_regions_and_memory(artifact: Path, run: Run) -> None:
    status, out, _ = run("inspect", artifact)
    assert status == 0
    assert "ethos-u55-128, architecture 1.0.6, 24 KiB shared buffer\n" in out
    assert "       0  read-only data  " in out
    assert "  input   image\n" in out


def test_inspect_lists_every_command_with_the_models_operators(artifact: Path, run: Run) -> None:
    status, out, _ = run("inspect", artifact, "--listing", "--json")
    (step,) = document(out)["steps"]
    assert status == 0
    assert len(step["listing"]) == step["commands"]
    assert step["listing"][-1]["command"] == "OP_STOP"
    operators = [line["operator"] for line in step["listing"] if "operator" in line]
    assert operators[0] == 'digits.tflite, operator 0 CONV_2D -> "conv0"'
    assert operators[-1] == 'digits.tflite, operator 7 SOFTMAX -> "probabilities"'


def test_inspect_without_a_report_beside_the_artifact(artifact: Path, run: Run) -> None:
    artifact.with_suffix(".json").unlink()
    status, out, err = run("inspect", artifact, "--listing")
    assert status == 0
    assert "SOFTMAX" not in out
    assert (
        err == "  artifact     digits_vela.tflite, 1 NPU operator\n  accelerator  ethos-u55-128\n"
    )


def test_inspect_lists_a_damaged_stream_up_to_the_damage(artifact: Path, run: Run) -> None:
    data = artifact.read_bytes()
    (step,) = mizzen.load(artifact).steps
    assert isinstance(step, NpuStep)
    end = data.index(step.program.words.tobytes()) + step.program.words.nbytes
    unknown = (0x03FF).to_bytes(4, "little")
    artifact.write_bytes(data[: end - 4] + unknown + data[end:])
    status, out, err = run("inspect", artifact, "--listing", "--json")
    answer = document(out)
    assert status == 2
    assert answer["error"]["code"].startswith("E50")
    assert answer["steps"][0]["listing"][-1]["command"] == "OP_ELEMENTWISE"
    assert f"error[{answer['error']['code']}]: {answer['error']['message']}\n" in err


def without_waits(artifact: Path) -> None:
    """Take the waits of an artifact's stream out; commands that change nothing take their place."""
    (step,) = mizzen.load(artifact).steps
    assert isinstance(step, NpuStep)
    words = step.program.words
    waits = [index for index, word in enumerate(words.tolist()) if word & 0xFFFF in (0x11, 0x12)]
    assert waits
    changed = words.copy()
    changed[waits] = 0x0000_0013  # OP_PMU_MASK, enable=0
    data = artifact.read_bytes()
    artifact.write_bytes(data.replace(words.tobytes(), changed.tobytes()))


def test_inspect_finds_hazards(velas: Path, run: Run) -> None:
    status, out, err = run("inspect", velas, "--hazards")
    assert status == 0
    assert out.endswith(
        "Hazards of step 0\n  checked  35 operations of ethos-u55-128\n  found    0 hazards\n"
    )
    without_waits(velas)
    status, out, err = run("inspect", velas, "--hazards", "--json")
    answer = document(out)
    (first, *_) = answer["steps"][0]["hazards"]["findings"]
    assert status == 1
    assert answer["holds"] is False
    assert answer["failures"][0]["code"] == first["code"] == "E671"
    assert err.endswith(
        "error[E671]: OP_ELEMENTWISE: lookup table must read bytes 22528..23551 of the NPU's "
        "internal memory after destination of OP_DMA_START at word 238 has written them, and "
        "nothing makes it wait\n"
        "  at   command at word 285\n"
        "  help put DMA_WAIT 0 before the command at word 285\n"
    )


def take_digests_away(artifact: Path) -> None:
    """Leave an artifact as another compiler writes it: nothing says which bytes it had."""
    artifact.write_bytes(unsealed(artifact.read_bytes(), artifact.name))
    artifact.with_suffix(".json").unlink()


def test_check_of_an_artifact(velas: Path, run: Run) -> None:
    status, out, err = run("check", "--artifact", velas)
    assert (status, err) == (0, "")
    told = f"of all {velas.stat().st_size:,} bytes, written by mizzen {mizzen.__version__}"
    step = f"\n  accelerator  ethos-u55-128\n  manifest     {told}\n"
    step += "  step 0       35 operations, 0 hazards\n"
    assert out == f"digits_vela.tflite{step}{EXECUTED}{NOT_KNOWN}"
    take_digests_away(velas)
    without_waits(velas)
    status, out, err = run("check", "--artifact", velas)
    assert out.endswith(f"\n  step 0       35 operations, 1 hazard\n{EXECUTED}{NOT_KNOWN}")
    assert err.startswith("error[E671]: OP_ELEMENTWISE: lookup table must read bytes ")
    status, out, _ = run("check", "--artifact", velas, "--json")
    answer = document(out)
    (step,) = answer["steps"]
    assert status == 1
    assert answer["holds"] is False
    assert (step["step"], step["malformed"], step["operations"]) == (0, False, 35)
    assert [row["code"] for row in step["findings"]] == [row["code"] for row in answer["failures"]]


def test_check_of_an_artifact_for_another_accelerator(artifact: Path, run: Run) -> None:
    words = ("check", "--artifact", artifact, "--accelerator-config")
    assert run(*words, "ethos-u55-128")[0] == 0
    status, _, err = run(*words, "ethos-u65-256")
    assert (status, err[:57]) == (2, "error[E113]: digits_vela.tflite must be for ethos-u65-256")


def test_check_of_an_artifact_whose_stream_is_malformed(artifact: Path, run: Run) -> None:
    (step,) = mizzen.load(artifact).steps
    assert isinstance(step, NpuStep)
    words = step.program.words.copy()
    words[0] |= 0x3FF
    take_digests_away(artifact)
    data = artifact.read_bytes()
    artifact.write_bytes(data.replace(step.program.words.tobytes(), words.tobytes()))
    status, out, err = run("check", "--artifact", artifact)
    assert status == 1
    assert out.endswith(f"\n  step 0       malformed\n{NOT_KNOWN}")
    assert err.startswith("error[E502]: ")
    status, out, _ = run("check", "--artifact", artifact, "--json")
    answer = document(out)
    assert status == 1
    assert answer["failures"][0]["code"] == "E502"
    assert answer["steps"] == [
        {
            "step": 0,
            "malformed": True,
            "findings": [answer["failures"][0]],
        }
    ]


def test_check_of_an_artifact_without_streams(here: Path, run: Run) -> None:
    status, out, err = run("check", "--artifact", "digits.tflite")
    assert (status, out) == (2, "")
    assert err == (
        "error[E206]: digits.tflite must have an NPU operator for its stream to be checked, and "
        "has none\n"
        "  help compile it first, or ask where its operators go: mizzen check digits.tflite\n"
    )


@pytest.mark.parametrize("words", [(), ("digits.tflite", "--artifact", "digits.tflite")])
def test_check_takes_a_model_or_an_artifact(words: tuple[str, ...], here: Path, run: Run) -> None:
    status, _, err = run("check", *words)
    assert status == 2
    assert err == (
        "error[E200]: the command line is wrong: check takes either MODEL or --artifact ARTIFACT\n"
        "  help mizzen check --help\n"
    )


def test_strict_runs_nothing_with_hazards(artifact: Path, run: Run) -> None:
    status, _, _ = run("run", artifact, "--input", "images.npy", "--strict", "--output-dir", "a")
    assert status == 0
    without_waits(artifact)
    words = ("run", artifact, "--input", "images.npy", "--output-dir", "b")
    status, _, err = run(*words, "--strict")
    assert status == 1
    assert "error[E671]: " in err
    assert not list(Path("b").glob("*"))
    assert run(*words)[0] == 0


def test_inspect_and_run_take_a_network_that_was_not_compiled(here: Path, run: Run) -> None:
    status, out, _ = run("inspect", "digits.tflite", "--json")
    assert status == 0
    assert document(out)["accelerator"] is None
    status, out, err = run("run", "digits.tflite", "--input", "images.npy")
    assert status == 0
    assert err == "  artifact  digits.tflite, 0 NPU operators, 8 CPU operators\n"


def test_check_says_what_a_board_has_left(here: Path, run: Run) -> None:
    status, out, _ = run(
        "check", "digits.tflite", "--board", "grove_vision_ai_v2", "--clock", "400M", "--json"
    )
    answer = document(out)
    assert status == 0
    assert answer["configuration"]["accelerator"] == "ethos-u55-64"  # the board's own
    rows = {row["memory"]: row for row in answer["board"]["headroom"]}
    assert rows["SRAM"]["used_bytes"] == answer["memory"]["arena_bytes"]
    assert rows["SRAM"]["left_bytes"] == (1924 << 10) - rows["SRAM"]["used_bytes"]
    assert rows["FLASH"]["used_bytes"] == answer["memory"]["file_bytes"]
    assert answer["clock_hz"] == answer["cost"]["clock_hz"] == 400_000_000


def test_check_fails_on_a_board_that_is_too_small(here: Path, run: Run) -> None:
    (here / "small.toml").write_text(
        'inherits = "himax_we2"\nname = "small"\n[[memory]]\nname = "SRAM"\nsize_kib = 4\n'
    )
    status, out, err = run("check", "digits.tflite", "--board", "small.toml")
    assert status == 1
    assert "error[E468]: SRAM of small must hold " in err
    assert "too small" in out
    assert "choose another memory mode" not in err
    assert "no option that was tried needs fewer than " in err


def test_a_clock_is_written_with_its_unit(here: Path, run: Run) -> None:
    status, _, err = run("check", "digits.tflite", "--clock", "fast")
    assert status == 2
    assert "a clock is written like 400M or 1.2G, not like 'fast'" in err


@pytest.mark.parametrize("option", [["--linux"], ["--linux-sram", "1K"]])
def test_a_network_has_no_stream(here: Path, run: Run, option: list[str]) -> None:
    status, _, err = run("check", "digits.tflite", *option)
    assert status == 2
    assert "--linux asks about the stream of an --artifact, and none is given" in err
