"""`mizzen tune` on the network of the digits example."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]

ON = ("--accelerator-config", "ethos-u55-64")
VELA = ("--generator", "vela")
"""Its options are what is searched, and hardly change what Mizzen makes of a small network."""


def test_what_is_chosen_is_written_and_its_command_repeats_it(here: Path, run: Run) -> None:
    status, out, err = run("tune", "digits.tflite", *ON, *VELA, "--objective", "sram", "--json")
    assert status == 0
    assert "accelerator  ethos-u55-64" in err
    document = json.loads(out)
    assert document["holds"] is True
    assert document["chosen"]["sram_bytes"] < document["base"]["sram_bytes"]
    assert document["chosen"]["exact"] is True
    assert all(row["proof"]["inputs"] == 16 for row in document["front"])
    written = (here / "output" / "digits_vela.tflite").read_bytes()
    program, *words = shlex.split(document["command"])
    assert program == "mizzen"
    assert words[-len(document["chosen"]["options"]) :] == document["chosen"]["options"]
    assert run(*words, "--output-dir", "again")[0] == 0
    assert (here / "again" / "digits_vela.tflite").read_bytes() == written


def test_a_budget_that_nothing_fits(here: Path, run: Run) -> None:
    words = ("--sram-budget", "1K", "--budget-seconds", "1")
    status, out, err = run("tune", "digits.tflite", *ON, *VELA, *words)
    assert status == 1
    assert "chosen  " not in out
    assert "error[E266]: some way to compile the network must fit 1024 bytes of SRAM" in err
    assert not (here / "output").exists()


def test_options_that_the_user_gave_stay_in_the_command(here: Path, run: Run) -> None:
    words = ("--optimise", "Size", "--target-option", "tensor-allocator=Greedy", "--prove", "off")
    status, out, _ = run(
        "tune", "digits.tflite", *ON, *VELA, *words, "--budget-seconds", "1", "--json"
    )
    assert status == 0
    document = json.loads(out)
    assert document["chosen"]["exact"] is False, "nothing was proved"
    command = shlex.split(document["command"])
    assert "tensor-allocator=Greedy" in command
    if document["chosen"]["choice"]["optimise"] is None:
        assert command[command.index("--optimise") + 1] == "Size"


def test_a_family_without_options_to_search(here: Path, run: Run) -> None:
    status, _, err = run("tune", "digits.tflite", "--accelerator-config", "ethos-n78-4tops-4ple")
    assert status == 2
    assert "error[E264]" in err
    assert not (here / "output").exists()
