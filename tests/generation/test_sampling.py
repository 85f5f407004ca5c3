"""Choosing the next token of its scores, and text as tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.generation import Sampling, tokenizer_of

SCORES = np.log(np.array([[0.1, 0.6, 0.0, 0.3], [0.3, 0.0, 0.1, 0.6]], np.float32) + 1e-9)


def test_the_best_is_taken_where_nothing_is_drawn() -> None:
    assert Sampling()(SCORES).tolist() == [1, 3]
    assert Sampling(top_k=4, temperature=0)(SCORES).tolist() == [1, 3]


def test_tokens_are_drawn_as_often_as_their_scores_say() -> None:
    draw, drawn = Sampling(top_k=3, seed=1), 4000
    counts = np.zeros((2, 4))
    for _ in range(drawn):
        counts[[0, 1], draw(SCORES)] += 1
    wanted = np.array([[0.1, 0.6, 0.0, 0.3], [0.3, 0.0, 0.1, 0.6]])
    # Five standard deviations of a share of half are 5 * sqrt(0.25 / 4000) = 0.04.
    assert np.abs(counts / drawn - wanted).max() < 0.04


def test_a_token_beyond_the_best_is_never_drawn() -> None:
    draw = Sampling(top_k=2, temperature=100, seed=2)
    drawn = np.stack([draw(SCORES) for _ in range(200)])
    assert [set(column) for column in drawn.T.tolist()] == [{1, 3}, {0, 3}]


def test_the_same_seed_draws_the_same() -> None:
    first, second = ([Sampling(4, 2.0, 7)(SCORES).tolist() for _ in range(3)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("wrong", [(0, 1.0, 0), (1, -1.0, 0), (1, float("nan"), 0), (1, 1.0, -1)])
def test_what_cannot_be_drawn_from_is_refused(wrong: tuple[int, float, int]) -> None:
    with pytest.raises(MizzenError, match="E733"):
        Sampling(*wrong)


def test_bytes_are_tokens_of_a_small_vocabulary() -> None:
    tokenizer = tokenizer_of(None, 256)
    assert tokenizer.encode("né") == [110, 195, 169]
    assert tokenizer.decode([110, 195, 169]) == "né"
    assert tokenizer.decode([110, 195]) == "n"
    with pytest.raises(MizzenError, match="E734"):
        tokenizer_of(None, 128).encode("é")


def test_a_large_vocabulary_needs_its_file(tmp_path: Path) -> None:
    with pytest.raises(MizzenError, match="E735"):
        tokenizer_of(None, 32_000)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(MizzenError, match=r"E73[67]"):
        tokenizer_of(tmp_path / "tokenizer.json", 32_000)
