"""The search for better ways to compile, on real networks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.analysis.tuning import tune
from mizzen.analysis.tuning.selection import best, told
from mizzen.diagnostics import MizzenError
from mizzen.report.proof import Proof
from mizzen.report.tuning import Candidate, Choice, Objective, front_of

from ..compiler.ethos_u.vela.test_tflite import sum_of_two_axes  # noqa: TID252 tests are no package with a name

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


def candidate(
    cycles: int, sram_bytes: int, constants_bytes: int = 10, **choice: object
) -> Candidate:
    total = sram_bytes
    return Candidate(
        Choice(**choice),  # pyright: ignore[reportArgumentType] - the fields of a choice
        cycles, sram_bytes, 0, constants_bytes, total, 100, 0,
    )  # fmt: skip


def test_a_front_has_what_nothing_beats_in_everything() -> None:
    rows = [candidate(10, 10), candidate(9, 11), candidate(10, 11), candidate(12, 12, 9)]
    assert front_of(rows) == [rows[1], rows[0], rows[3]]


def test_of_equals_the_first_is_on_the_front() -> None:
    rows = [candidate(10, 10), candidate(10, 10, optimise="Size")]
    assert front_of(rows) == rows[:1]


def test_what_is_hardly_better_is_not_told() -> None:
    rows = [candidate(1000, 1000), candidate(1001, 999), candidate(1001, 990)]
    assert told(rows) == [rows[0], rows[2]]


def test_fewer_cycles_are_chosen_only_where_no_memory_grows() -> None:
    base, faster = candidate(100, 100), candidate(50, 101)
    other = candidate(90, 100, 10)
    assert best([base, faster, other], base, Objective.CYCLES, None) == other
    assert best([base, faster, other], base, Objective.CYCLES, 101) == faster


def test_less_memory_is_chosen_where_at_most_one_percent_is_lost() -> None:
    base, slow, small = candidate(1000, 100), candidate(1011, 50), candidate(1010, 60)
    assert best([base, slow, small], base, Objective.SRAM, None) == small
    assert best([base, slow, small], base, Objective.SRAM, 55) == slow
    assert best([base, slow, small], base, Objective.SRAM, 49) is None


def test_a_choice_is_the_options_that_repeat_it() -> None:
    choice = Choice("Size", 4096, ("cascading", "buffering"), ())
    assert choice.words == (
        "--optimise", "Size", "--arena-cache-size", "4096",
        "--target-option", "disable=cascading+buffering",
    )  # fmt: skip
    assert str(Choice()) == "as asked for"


@pytest.mark.sweep
def test_less_sram_for_a_real_network(model_file: Callable[[str], Path]) -> None:
    path = model_file("rnnoise_INT8.tflite")
    tuned = tune(path, "ethos-u65-512", objective="sram")
    report, chosen = tuned.report, tuned.report.chosen
    assert chosen is not None
    assert chosen.sram_bytes <= 0.5 * report.base.sram_bytes
    assert chosen.cycles <= 1.01 * report.base.cycles
    assert all(row.is_exact for row in report.front)
    assert report.distinct < report.tried
    again = mizzen.compile(
        path,
        "ethos-u65-512",
        optimise=chosen.choice.optimise or "Performance",
        arena_cache_size=chosen.choice.arena_cache_bytes,
        target_options=chosen.choice.target_options,
    )
    assert tuned.artifact is not None
    assert again.data == tuned.artifact.data
    plain = mizzen.compile(path, "ethos-u65-512")
    rng = np.random.default_rng(3)
    arrays = [rng.integers(-128, 128, (8, *row.shape)).astype(np.int8) for row in plain.inputs]
    for ours, theirs in zip(tuned.artifact.run(*arrays), plain.run(*arrays), strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.usefixtures("velas_code")
def test_rewrites_make_a_real_network_faster_in_the_same_memory(
    model_file: Callable[[str], Path],
) -> None:
    path = model_file("kws_ref_model.tflite")
    tuned = tune(path, "ethos-u55-128")
    report, chosen = tuned.report, tuned.report.chosen
    assert chosen is not None
    assert chosen.choice.rewrites
    assert chosen.cycles <= 0.9 * report.base.cycles
    assert all(
        ours <= theirs for ours, theirs in zip(chosen.memories, report.base.memories, strict=True)
    )
    assert chosen.is_exact
    assert tuned.artifact is not None
    plain = mizzen.compile(path, "ethos-u55-128")
    ours, theirs = tuned.artifact, plain
    assert [(row.name, row.shape) for row in (*ours.inputs, *ours.outputs)] == [
        (row.name, row.shape) for row in (*theirs.inputs, *theirs.outputs)
    ]
    features = np.random.default_rng(1).integers(-128, 128, (32, 49, 10, 1)).astype(np.int8)
    assert np.array_equal(ours.run(features), theirs.run(features))
    assert ours.report is not None
    assert theirs.report is not None
    assert [(row.index, row.kind, row.name) for row in ours.report.placements] == [
        (row.index, row.kind, row.name) for row in theirs.report.placements
    ]
    named = {origin.operator for stream in ours.report.origins for origin in stream.values()}
    assert named == set(range(13)) - {10}, "all but the flattening have commands"
    kinds = {row.index: row.kind for row in theirs.report.placements}
    for stream in ours.report.origins:
        assert all(origin.kind == kinds[origin.operator or 0] for origin in stream.values())


def test_what_is_found_does_not_depend_on_the_number_of_jobs(
    model_file: Callable[[str], Path],
) -> None:
    path = model_file("hello_world_int8.tflite")
    one, three = (tune(path, "ethos-u55-256", jobs=jobs).report for jobs in (1, 3))
    assert one == three


def test_a_budget_that_nothing_fits_chooses_nothing() -> None:
    tuned = tune(DIGITS, "ethos-u55-128", sram_budget=100)
    assert tuned.artifact is None
    assert tuned.report.chosen is None
    assert tuned.report.front


def test_no_time_leaves_the_network_as_it_was_asked_for() -> None:
    report = tune(DIGITS, "ethos-u55-128", budget_seconds=0).report
    assert report.tried == 1
    assert report.chosen is not None
    assert report.chosen.choice == Choice()
    assert report.chosen.is_exact


def test_a_budget_of_time_has_the_proofs_in_it() -> None:
    """Once only the search ended in time, and the proofs came after it."""
    shortest = tune(DIGITS, "ethos-u55-128", budget_seconds=0).report.seconds
    report = tune(DIGITS, "ethos-u55-128", budget_seconds=8 * shortest).report
    assert report.tried > 1
    assert report.seconds < 10 * shortest
    assert all(candidate.is_exact for candidate in report.front)


def test_progress_counts_compilations(model_file: Callable[[str], Path]) -> None:
    path = model_file("hello_world_int8.tflite")
    told_of: list[tuple[int, int]] = []

    def tell(done: int, planned: int) -> None:
        told_of.append((done, planned))

    report = tune(path, "ethos-u55-128", on_progress=tell).report
    assert [done for done, _ in told_of] == list(range(1, report.tried + 1))
    assert all(done <= planned for done, planned in told_of)


def test_a_report_goes_to_json() -> None:
    report = tune(DIGITS, "ethos-u55-128", budget_seconds=0).report
    document = json.loads(json.dumps(report.as_dict()))
    assert document["front"][0]["exact"] is True
    assert document["chosen"]["options"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"accelerator": "ethos-n78-4tops-4ple"},
            "error[E264]: the compiler of ethos-n78-4tops-4ple must have options to search, and "
            "has none\n  help compile with `mizzen compile`",
        ),
        (
            {"objective": "speed"},
            "error[E265]: what to want the least of must be one of cycles, sram, flash, not "
            "'speed'",
        ),
    ],
)
def test_what_cannot_be_searched(arguments: dict[str, str], said: str) -> None:
    with pytest.raises(MizzenError) as caught:
        tune(DIGITS, **arguments)  # pyright: ignore[reportArgumentType] - keywords of a table
    assert caught.value.diagnostic.render() == said


@pytest.mark.usefixtures("velas_code")
def test_operators_that_are_known_to_be_wrong_are_not_called_exact(tmp_path: Path) -> None:
    path = tmp_path / "sum.tflite"
    path.write_bytes(sum_of_two_axes())
    report = tune(path, "ethos-u55-128", allow_inexact=True, budget_seconds=0).report
    assert report.chosen is not None
    assert "SUM 1" in report.chosen.proof.differing
    assert not report.chosen.is_exact


def test_a_candidate_without_a_proof_is_not_exact() -> None:
    row = candidate(1, 1)
    assert not row.is_exact
    assert row.proved(Proof(4, 20)).is_exact
    assert not row.proved(Proof(4, 20, differing=("ADD 1",))).is_exact
