"""`--board` of every verb that takes one: its NPU is the default; one that it has not is told."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import mizzen
from mizzen.boards import find_board
from mizzen.cli.parser import help_texts

Run = Callable[..., tuple[int, str, str]]

REAL = (
    "alif_ensemble_e7", "alif_ensemble_e7_he", "alif_ensemble_e8", "grove_vision_ai_v2",
    "infineon_pse84", "nuvoton_m55m1", "nxp_imx93", "openmv_ae3", "renesas_ra8p1",
)  # fmt: skip


def test_all_these_verbs_take_a_board() -> None:
    takes = [name for name, text in help_texts().items() if "--board NAME|FILE.toml" in text]
    assert sorted(takes) == [
        "mizzen calibrate", "mizzen check", "mizzen compare", "mizzen compile", "mizzen doctor",
        "mizzen emulate", "mizzen export", "mizzen report", "mizzen run",
        "mizzen targets", "mizzen tune",
    ]  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_a_board_compiles_for_its_npu_and_fits(name: str, here: Path, run: Run) -> None:
    words = ("compile", "digits.tflite", "--board", name, "--prove", "off")
    status, out, err = run(*words, "--json")
    answer = json.loads(out)
    board = find_board(name)
    assert status == 0
    assert f"board        {board.title} ({name})\n" in err
    assert answer["configuration"]["accelerator"] == board.accelerators[0]
    assert answer["board"]["findings"] == []
    assert all(row["left_bytes"] > 0 for row in answer["board"]["headroom"])


@pytest.mark.parametrize("name", REAL)
def test_an_artifact_for_another_size_is_not_for_the_board(name: str, here: Path, run: Run) -> None:
    """Its driver would end in a configuration mismatch."""
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-32", "--prove", "off")
    artifact = "output/digits_vela.tflite"
    status, _, err = run("check", "--artifact", artifact, "--board", name)
    assert status == 1
    assert "error[E442]: the NPU on " in err or "error[E415]: the NPU on " in err
    status, _, err = run("run", artifact, "--input", "x.npy", "--board", name)
    assert status == 2
    assert "the NPU on " in err
    assert run("export", artifact, "--to", "c", "--board", name)[0] == 2


@pytest.mark.parametrize("verb", ["compile", "check", "report", "tune"])
def test_an_accelerator_that_the_board_has_not_is_told(verb: str, here: Path, run: Run) -> None:
    words = (verb, "digits.tflite", "--board", "alif_ensemble_e8")
    status, _, err = run(*words, "--accelerator-config", "ethos-u55-128")
    assert status == 2
    assert (
        "error[E237]: the accelerator must be an NPU of alif_ensemble_e8, which has ethos-u85-256 "
        "or ethos-u55-256, not 'ethos-u55-128'\n"
        "  help leave out --accelerator-config, or name a board that has it: "
        "alif_ensemble_e7_he or infineon_pse84\n"
    ) in err


def test_the_other_half_of_a_chip_is_named(here: Path, run: Run) -> None:
    words = ("check", "digits.tflite", "--board", "alif_ensemble_e7")
    _, _, err = run(*words, "--accelerator-config", "ethos-u55-128")
    help = (
        "  help leave out --accelerator-config, or name a board that has it: alif_ensemble_e7_he\n"
    )
    assert err.endswith(help)


def test_an_artifact_is_compared_on_its_board_alone(here: Path, run: Run) -> None:
    words = ("compare", "digits.tflite", "--board", "alif_ensemble_e7_he", "--inputs", "1")
    status, out, err = run(*words)
    assert (status, "ethos-u55-128" in out + err) == (0, True)
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-32", "--prove", "off")
    status, _, err = run(*words, "--artifact", "output/digits_vela.tflite")
    assert status == 2
    assert "error[E442]: the NPU on alif_ensemble_e7_he must be ethos-u55-128" in err


def test_the_second_npu_of_a_board_is_asked_for_by_name(here: Path, run: Run) -> None:
    words = ("compile", "digits.tflite", "--board", "alif_ensemble_e8", "--prove", "off", "--json")
    _, out, _ = run(*words, "--accelerator-config", "ethos-u55-256")
    assert json.loads(out)["configuration"]["accelerator"] == "ethos-u55-256"


def test_a_fast_memory_of_its_own_is_what_the_compiler_stages_in(here: Path, run: Run) -> None:
    words = ("compile", "digits.tflite", "--board", "imx93", "--prove", "off", "--json")
    _, out, err = run(*words)
    assert "arena cache  96.0 KiB\n" in err
    assert json.loads(out)["configuration"]["memory_mode"] == "Dedicated_Sram_384KB"


def test_a_network_that_does_not_fit_the_board_fails_the_compilation(here: Path, run: Run) -> None:
    (here / "small.toml").write_text(
        'inherits = "himax_we2"\nname = "small"\n[[memory]]\nname = "SRAM"\nsize_kib = 4\n'
    )
    status, out, err = run("compile", "digits.tflite", "--board", "small.toml", "--prove", "off")
    assert status == 1
    assert "error[E468]: SRAM of small must hold " in err
    assert "On Himax WiseEye2 HX6538\n" in out


def test_a_report_of_a_model_is_for_the_board(here: Path, run: Run) -> None:
    status, _, err = run("report", "digits.tflite", "--board", "pse84", "--prove", "off")
    assert status == 0
    assert "accelerator  ethos-u55-128" in err


def test_targets_show_a_board(run: Run) -> None:
    status, out, _ = run("targets", "--board", "alif_ensemble_e8")
    assert status == 0
    assert "  NPU        ethos-u85-256 at 0x49042000, interrupt 366, clock 400 MHz\n" in out
    assert "  NPU        ethos-u55-256 at 0x400e1000, interrupt 55, clock 400 MHz\n" in out
    status, out, _ = run("targets", "--board", "pse84", "--json")
    assert json.loads(out)["missing"] == ["cpu.interrupts", "npu.base"]


def test_a_board_of_ones_own_is_emulated_with_its_own_npu(here: Path, run: Run) -> None:
    (here / "mine.toml").write_text(
        'inherits = "corstone300"\nname = "mine"\n[npu]\nproducts = ["ethos-u55"]\n'
        'accelerators = ["ethos-u55-64"]\n'
    )
    (here / "empty.elf").write_bytes(b"\x7fELF")
    _, _, err = run("emulate", "empty.elf", "--board", "mine.toml")
    assert "  board        Arm Corstone-300 (mine)\n  accelerator  ethos-u55-64\n" in err
    _, _, err = run("emulate", "empty.elf", "--board", "corstone320")
    assert "  accelerator  ethos-u85-256\n" in err


INI = """
[System_Config.Mine]
core_clock=400e6
axi0_port=Sram
axi1_port=OffChipFlash
Sram_clock_scale=1.0
Sram_burst_length=32
Sram_read_latency=32
Sram_write_latency=32
OffChipFlash_clock_scale=0.125
OffChipFlash_burst_length=128
OffChipFlash_read_latency=64
OffChipFlash_write_latency=64

[Memory_Mode.Sram_Only]
const_mem_area=Axi0
arena_mem_area=Axi0
cache_mem_area=Axi0

[Memory_Mode.Shared_Sram]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
"""


def test_the_boards_memory_mode_is_the_default_with_files_of_ones_own(here: Path, run: Run) -> None:
    (here / "mine.ini").write_text(INI)
    words = ("compile", "digits.tflite", "--config", "mine.ini", "--system-config", "Mine")
    options = ("--prove", "off", "--json")
    _, out, _ = run(*words, "--board", "alif_ensemble_e7", *options)
    configuration = json.loads(out)["configuration"]
    assert configuration["memory_mode"] == "Shared_Sram"
    assert configuration["system_config"] == "Mine"
    status, _, err = run(*words, *options)
    assert status == 2
    assert "error[E219]: " in err


def test_sources_of_an_earlier_export_are_told(here: Path, run: Run) -> None:
    words = ("digits.tflite", "--prove", "off", "--quiet", "--board")
    run("compile", *words, "grove_vision_ai_v2", "--output-dir", "grove")
    run("compile", *words, "alif_ensemble_e7", "--output-dir", "alif")
    grove = ("export", "grove/digits_vela.tflite", "--to", "tflm", "--board", "grove_vision_ai_v2")
    assert run(*grove, "--output-dir", "made")[2] == ""
    assert run(*grove, "--output-dir", "made")[2] == ""
    alif = ("export", "alif/digits_vela.tflite", "--to", "c", "--board", "alif_ensemble_e7")
    assert run(*alif, "--output-dir", "made")[2] == (
        "warning[W327]: made holds sources that this export did not write, and a build may compile "
        "them: onto_board/network.cc, onto_board/operators.cc\n"
        "  help remove them, or give each board a folder of its own with --output-dir\n"
    )


def test_what_was_not_compiled_is_told_where_it_is_exported_and_emulated(
    here: Path, run: Run
) -> None:
    words = ("digits.tflite", "--to", "tflm", "--board", "grove_vision_ai_v2")
    assert run("export", *words)[2].startswith(
        "warning[W326]: nothing in digits.tflite is for an NPU: "
    )
    page = (here / "output" / "ONTO_YOUR_BOARD.md").read_text()
    assert "| NPU | not used: nothing in the network is for it |" in page
    assert (
        "warning[W326]: nothing in digits.tflite is for an NPU: "
        in run("emulate", "digits.tflite")[2]
    )


def test_an_artifact_alone_has_the_mode_of_a_compilation_for_the_board(
    here: Path, run: Run
) -> None:
    run("compile", "digits.tflite", "--board", "grove_vision_ai_v2", "--prove", "off")
    lone = here / "lone.tflite"
    lone.write_bytes((here / "output" / "digits_vela.tflite").read_bytes())
    words = (lone, "--board", "grove_vision_ai_v2")
    _, out, err = run("export", *words, "--to", "tflm", "--json")
    assert json.loads(out)["memory_mode"] == "Shared_Sram"
    assert err.startswith("warning[W324]: the memory mode of lone.tflite is not known")
    _, out, _ = run("doctor", *words)
    assert "memory mode           not checked: no report is beside the artifact; taken as" in out


def test_the_report_names_the_board_and_the_fit(here: Path, run: Run) -> None:
    words = ("report", "digits.tflite", "--board", "nuvoton_m55m1", "--prove", "off")
    status, out, err = run(*words)
    assert status == 0
    assert "On Nuvoton NuMaker-M55M1\n  memory mode  Shared_Sram\n  SRAM01 " in out
    assert " at 500 MHz, " in out
    assert "the system's: the board file has no NPU clock; --clock gives it" in err
    page = (here / "digits.html").read_text()
    assert ">On Nuvoton NuMaker-M55M1</h2>" in page
    _, out, _ = run(*words, "--clock", "400M", "--json")
    answer = json.loads(out)
    assert answer["cost"]["clock_hz"] == 400_000_000
    assert "time" not in answer
    assert answer["board"]["findings"] == []
    (here / "small.toml").write_text(
        'inherits = "himax_we2"\nname = "small"\n[[memory]]\nname = "SRAM"\nsize_kib = 4\n'
    )
    status, _, err = run("report", "digits.tflite", "--board", "small.toml", "--prove", "off")
    assert status == 1
    assert "error[E468]: SRAM of small must hold " in err
    assert "does not fit" in (here / "digits.html").read_text()


def test_a_compilation_and_a_report_tell_the_time_at_another_clock(here: Path, run: Run) -> None:
    words = ("digits.tflite", "--accelerator-config", "ethos-u55-64", "--clock", "400M")
    for verb in ("compile", "report"):
        _, out, err = run(verb, *words, "--prove", "off")
        assert re.search(r"^  estimate .* at 400 MHz, ", out, re.M), verb
        assert "clock        400 MHz\n" in err


def test_there_is_one_clock_and_it_is_the_boards(here: Path, run: Run) -> None:
    """Not the system configuration's, which is another board's; wherever a time is told."""
    words = ("digits.tflite", "--board", "alif_ensemble_e7_he", "--prove", "off")
    made = json.loads(run("compile", *words, "--json")[1])
    assert made["configuration"]["system_config"] == "Ethos_U55_High_End_Embedded"
    (row,) = csv.DictReader(Path(made["summary"]).read_text().splitlines())
    assert float(row["core_clock"]) == 160e6
    assert float(row["inference_time"]) == pytest.approx(made["cycles"] / 160e6)
    alone = json.loads(run("report", made["artifact"], "--json")[1])
    for told in (made, made["cost"], alone["cost"], alone["compilation"]):
        assert told["clock_hz"] == 160e6
    _, out, _ = run("check", *words)
    assert out.count(" at 160 MHz") == 1
    assert "500 MHz" not in out
    other = json.loads(run("report", made["artifact"], "--clock", "80M", "--json")[1])
    assert other["cost"]["clock_hz"] == other["compilation"]["clock_hz"] == 80e6
    assert other["cost"]["cycles"] == made["cycles"]


def test_the_cpu_has_the_boards_core_and_its_own_clock(here: Path, run: Run) -> None:
    words = ("check", "digits.tflite", "--ignore-ops", "SOFTMAX", "--max-cpu-ops", "1", "--json")
    more = ("--prove", "off")
    board = json.loads(run(*words, "--board", "renesas_ra8p1", *more)[1])
    alone = json.loads(run(*words, "--accelerator-config", "ethos-u55-256", *more)[1])
    assert (board["processor"], alone["processor"]) == ("cortex-m85", "cortex-m55")
    assert (board["processor_clock_hz"], board["clock_hz"]) == (1e9, 5e8)
    assert board["npu_cycles"] == alone["npu_cycles"]
    assert 0 < board["cpu_cycles"] < alone["cpu_cycles"]
    out = run(*words[:-1], "--board", "renesas_ra8p1", *more)[1]
    assert "of the cycles on a Cortex-M85 at 1000 MHz" in " ".join(out.split())


@pytest.mark.parametrize("board", [None, "alif_ensemble_e7"])
def test_a_clock_that_is_none_is_refused_in_python(board: str | None, here: Path) -> None:
    with pytest.raises(mizzen.MizzenError, match=r"E290.*above 0 Hz, not -1") as caught:
        mizzen.compile("digits.tflite", board=board, clock_hz=-1, prove="off")
    assert caught.value.diagnostic.help == "clock_hz=400e6 is 400 MHz"
    artifact = mizzen.compile("digits.tflite", board=board, clock_hz=400e6, prove="off")
    assert artifact.report is not None
    assert artifact.report.time is not None
    assert artifact.report.time.clock_hz == 400e6


def test_targets_say_what_is_known_of_energy(run: Run) -> None:
    text = " ".join(run("targets", "--board", "himax_we2")[1].split())
    assert "idle 87.1 mW (within 1.26 times), mac 0.42 pJ (within 3.7 times)" in text
    assert "uNPU-Bench, power trace of YOLOv1" in text
    figures = json.loads(run("targets", "--board", "grove_vision_ai_v2", "--json")[1])["energy"]
    assert [each["unit"] for each in figures] == ["mW", "pJ", "pJ a byte"]
    _, out, _ = run("targets", "--board", "nuvoton_m55m1")
    assert "no figures with a source are known, so that none is told" in " ".join(out.split())
    assert json.loads(run("targets", "--board", "nuvoton_m55m1", "--json")[1])["energy"] is None
