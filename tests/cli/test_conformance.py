"""`mizzen conformance`: its table, its documents, its exit status."""

from __future__ import annotations

import json

import pytest

from mizzen.cli.main import main

WORDS = ("conformance", "--operator", "TILE", "--inputs", "2")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_table_has_a_column_for_each_accelerator(capfd: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--accelerator-config", "ethos-u55-128,ethos-u65-256"]
    assert main(words) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[:4] == [
        "Networks",
        "  operator  type   ethos-u55-128  ethos-u65-256",
        "  TILE      int16  1 exact        1 exact",
        "  TILE      int8   1 exact        1 exact",
    ]
    assert err == "2 networks through Vela on ethos-u55-128, ethos-u65-256\n"


def test_one_document(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--json", "--compiler", "vela-legacy"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["compiler"] == "vela-legacy"
    assert document["accelerators"] == ["ethos-u55-256"]
    assert {row["verdict"] for row in document["rows"]} == {"on the CPU"}
    assert document["holds"] is True


def test_markdown(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--format", "markdown"]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "| operator | type | ethos-u55-256 |",
        "| --- | --- | --- |",
        "| `TILE` | int16 | 1 exact |",
        "| `TILE` | int8 | 1 exact |",
    ]


def test_what_does_not_hold_decides_the_exit_status(capfd: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--accelerator-config", "ethos-u85-256", "--compiler", "vela-legacy"]
    assert main(words) == 1
    out, err = capfd.readouterr()
    assert "Not run\n  tile, tile_int16" in out
    assert "    the compiler does not know Ethos-U85" in out
    assert "E723" in err
    assert "and 2 of 2 are not" in err


def test_no_inputs_test_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--inputs", "0"]) == 2
    assert "argument --inputs: a whole number from 1 is needed, not '0'" in capfd.readouterr().err


def test_an_operator_that_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--operator", "REDUCEMAX"]) == 2
    assert "did you mean REDUCE_MAX?" in capfd.readouterr().err
