"""Damaged streams end in findings or in an error that says where; never in another way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.hazards.footprint import grid

from .maker import Maker

MUTANTS = 150


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_mutated_words(repository: Path, accelerator: str) -> None:
    artifact = mizzen.compile(repository / "examples" / "digits" / "digits.tflite", accelerator)
    (step,) = artifact.steps
    assert isinstance(step, NpuStep)
    generator = np.random.default_rng(7)
    errors: list[MizzenError] = []
    found = 0
    for _ in range(MUTANTS):
        words = step.program.words.copy()
        for at in generator.integers(0, len(words), 3):
            words[at] ^= np.uint32(1) << np.uint32(generator.integers(10, 32))
        try:
            found += bool(find_hazards(replace(step.program, words=words)).findings)
        except MizzenError as error:
            errors.append(error)
    assert errors
    assert all(error.diagnostic.origin is not None for error in errors)
    assert found > 0


@pytest.mark.parametrize(
    ("length", "steps", "what"),
    [
        (1, ((65536, 2), (65536, 200_000)), "4294967296 of 1"),
        (2, ((65536, 2), (1 << 31, 131_072)), "1 of 281474976710656"),
    ],
)
def test_an_access_in_too_many_pieces(
    length: int, steps: tuple[tuple[int, int], ...], what: str
) -> None:
    with pytest.raises(MizzenError) as caught:
        grid(0, length, *steps)
    assert str(caught.value) == (
        "error[E613]: an access must be at most 4194304 runs of at most 1099511627776 bytes, not "
        f"{what}\n  help the command stream is damaged; compile it again"
    )


LONG = (1, 50_000, 8)


def test_blocks_over_the_own_input_that_are_too_many_to_look_at() -> None:
    maker = Maker("ethos-u65-256")
    maker.copy(0, 8, LONG, block=(1, 1, 8))
    with pytest.raises(MizzenError) as caught:
        find_hazards(maker.program([(0, 64)], (64, 8)))
    assert str(caught.value) == (
        "error[E645]: OP_POOL: an operation that writes over its own input must have few blocks: "
        "this one has 52,049, and 32,896 more of the stream can be looked at\n"
        '  at   net.tflite, command at word 57, operator 0 AVERAGE_POOL_2D -> "t57"\n'
        "  help write the output elsewhere, or take larger blocks; where it should have few, a "
        "size or a stride is wrong"
    )


def test_where_a_race_was_found_the_rest_is_left() -> None:
    maker = Maker("ethos-u65-256")
    maker.copy(0, 8, (1, 4, 8), block=(1, 1, 8))
    maker.copy(0, 8, LONG, block=(1, 1, 8))
    found = find_hazards(maker.program([(0, 64)], (8, 8))).diagnostics
    assert "E672" in {each.code for each in found}
