"""A sample of mutated files of every format, and that what goes wrong with one is found.

`benchmarks/mutations.py` gives such files to what reads them; many more of them than here.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COUNT = 700
SEED = 28


@pytest.fixture(scope="module")
def mutations() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        names = ("mutations", "mutations_corpus", "mutations_formats", "mutations_workers")
        parts = {name.rpartition("_")[2]: import_module(name) for name in names}
    finally:
        sys.path.remove(str(BENCHMARKS))
    return SimpleNamespace(**parts)


@pytest.fixture(scope="module")
def corpus(mutations: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("ethosu.regor", reason="Vela is not installed")
    folder = tmp_path_factory.mktemp("mutations") / "corpus"
    mutations.corpus.make(folder, "torch", "meshes")
    return mutations.formats.corpus_in(folder)


def campaign(mutations: Any, corpus: Any, folder: Path, count: int) -> Any:
    found = mutations.mutations.Campaign(
        corpus, folder, SEED, mutations.mutations.numbered(0, count)
    )
    found.run(1)
    return found


def test_a_sample(mutations: Any, corpus: Any, tmp_path: Path) -> None:
    mutations.mutations.warm_up(corpus)
    done = campaign(mutations, corpus, tmp_path, COUNT)
    found = mutations.mutations.figures(done.rows.values())
    findings = [row for chunk in done.rows.values() for row in chunk["findings"]]
    assert not findings
    assert found["mutated_inputs"] == COUNT
    assert found["peak_bytes"] < mutations.workers.MOST_BYTES
    assert set(found["formats"]) == {row.name for row in corpus.formats}
    refused = {key for chunk in done.rows.values() for key in chunk["codes"] if " 2 E" in key}
    assert len(refused) > 30, "most mutations must reach what reads a file"


def test_a_file_is_made_again_by_its_number(mutations: Any, corpus: Any) -> None:
    made = [mutations.formats.input_of(corpus, SEED, number) for number in range(200)]
    again = [mutations.formats.input_of(corpus, SEED, number) for number in range(199, -1, -1)]
    assert [row.data for row in made] == [row.data for row in reversed(again)]
    assert len({row.data for row in made}) > 190


def _raises(_path: Path) -> None:
    raise KeyError("planted")


def _ends(_path: Path) -> None:
    raise SystemExit(7)


def _dies(_path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _loops(_path: Path) -> None:
    while True:
        pass


def _grows(_path: Path) -> None:
    assert len(bytearray(b"x") * (9 << 28)) > 1 << 31


def _executes(path: Path) -> None:
    (path.parent / "EXECUTED").touch()


PLANTED: dict[str, Callable[[Path], None]] = {
    "bug": _raises,
    "exception": _ends,
    "died": _dies,
    "hang": _loops,
    "memory": _grows,
    "executed": _executes,
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_goes_wrong_is_found(
    mutations: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "hang":
        monkeypatch.setattr(mutations.workers, "MOST_SECONDS", 1.0)
    if kind == "memory":  # the process of the tests, which is forked, may have most addresses
        monkeypatch.setattr(mutations.workers, "MOST_ADDRESSES", 1 << 40)
    (tmp_path / "x.bin").write_bytes(b"sound")
    use = mutations.formats.Use(1, function=PLANTED[kind])
    made = mutations.formats.Format("planted", 1, ("x.bin",), mutations.formats.raw, (use,))
    corpus = mutations.formats.corpus_in(tmp_path, (made,))
    done = campaign(mutations, corpus, tmp_path / "found", 2)
    rows = [row for chunk in done.rows.values() for row in chunk["findings"]]
    assert [row[:3] for row in rows] == [[0, kind, "planted"], [1, kind, "planted"]]
    assert (tmp_path / "found" / "findings" / f"{SEED}-1.bin").exists()
    if kind == "bug":
        assert rows[0][3].startswith("KeyError at ")
    again = mutations.mutations.Campaign(
        corpus, tmp_path / "found", SEED, mutations.mutations.numbered(0, 2)
    )
    assert again.rows == {0: done.rows[0]}, "what was done is not done again"
