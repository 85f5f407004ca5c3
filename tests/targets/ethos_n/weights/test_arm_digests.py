"""What Mizzen encodes against digests of what Arm's Support Library 23.02 does, and back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from mizzen.targets.ethos_n.sim.weight_decoding import decode
from mizzen.targets.ethos_n.weights.weight_encoding import encode

from .cases import Case, cases

DIGESTS = Path(__file__).with_name("arm_digests.txt")
"""SHA-256 of the data and of the stripes as text, 16 digits; size of the data; name of the case."""


def arms_answers() -> dict[str, tuple[str, int]]:
    rows = (line.split(" ", 2) for line in DIGESTS.read_text().splitlines())
    return {name: (digest, int(size)) for digest, size, name in rows}


ANSWERS = arms_answers()


def test_every_case_has_an_answer() -> None:
    assert [case.name for case in cases()] == list(ANSWERS)


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_a_case_is_encoded_as_arm_does_and_decodes_to_itself(case: Case) -> None:
    encoded = encode(
        case.weights,
        case.layout,
        zero_point=case.zero_point,
        bias=case.bias,
        scale=case.scale,
        capabilities=case.capabilities,
    )
    stripes = " ".join(f"{stripe.offset}+{stripe.size}" for stripe in encoded.stripes)
    digest = hashlib.sha256(encoded.data + stripes.encode()).hexdigest()[:16]
    assert (digest, len(encoded.data)) == ANSWERS[case.name]

    found = decode(encoded.data, encoded.stripes, case.layout, case.capabilities)
    assert np.array_equal(found.weights, case.weights.astype(int) - case.zero_point)
    assert np.array_equal(found.bias, case.bias)
    ofms = np.ones(case.layout.ofms, int)
    assert np.array_equal(found.multipliers, ofms * case.scale.multipliers)
    assert np.array_equal(found.shifts, ofms * case.scale.shifts)
    assert np.array_equal(found.zero_points, ofms * (case.scale.zero_point % 256))
