"""Where constants lie in the read-only region."""

from __future__ import annotations

from mizzen.targets.ethos_u.generator.emit.constants import shared_weights
from mizzen.targets.ethos_u.generator.operations import (
    Blob,
    Blocking,
    Issue,
    Schedule,
    Sequence,
    WeightPart,
)

SCALES, WEIGHTS = (bytes(range(16)), bytes(range(1, 17))), bytes(range(32))


def schedule(*stagings: int | None) -> Schedule:
    """Return issues whose blobs have equal weights, and scales of their own."""
    part = WeightPart(0, 16, 16, 32)
    issues = [
        Issue(place, Blocking((1, 1, 16)), blob=place, staging=staging)
        for place, staging in enumerate(stagings)
    ]
    blobs = tuple(Blob(scales + WEIGHTS, (part,)) for scales in SCALES[: len(issues)])
    nothing = Sequence((), (), (), ())
    return Schedule(nothing, (), (), (), blobs, tuple(issues), {})


def test_weights_that_two_blobs_have_lie_apart() -> None:
    assert shared_weights(schedule(None, None)) == {WEIGHTS}


def test_blobs_that_are_fetched_stay_whole() -> None:
    assert shared_weights(schedule(None, 0)) == frozenset()


def test_weights_of_one_blob_stay_with_its_scales() -> None:
    assert shared_weights(schedule(None)) == frozenset()
