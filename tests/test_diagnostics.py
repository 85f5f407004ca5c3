"""What suggestions name."""

from __future__ import annotations

import pytest

from mizzen.diagnostics import MOST_MEANT, did_you_mean, nearest

NAMES = ("ethos-u55-64", "ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple", "Shared_Sram")


@pytest.mark.parametrize(
    ("came", "said"),
    [
        ("u55", "did you mean ethos-u55-64 or ethos-u55-128?"),
        ("Ethos_U55", "did you mean ethos-u55-64 or ethos-u55-128?"),
        ("ethosu55-1", "did you mean ethos-u55-128?"),
        ("ethos-n78", "did you mean ethos-n78-4tops-4ple?"),
        ("sram", "did you mean Shared_Sram?"),
        ("shard_sram", "did you mean Shared_Sram?"),
        ("etos-u85-256", "did you mean ethos-u85-256?"),
        ("ethos-u", "did you mean ethos-u55-64, ethos-u55-128 or ethos-u85-256?"),
        ("e", None),
        ("", None),
        ("cortex", None),
    ],
)
def test_names_that_begin_so_may_be_meant(came: str, said: str | None) -> None:
    assert did_you_mean(came, NAMES) == said


def test_a_suggestion_has_few_names() -> None:
    assert nearest("layer", [f"layer-{number}" for number in range(100)]) == [
        f"layer-{number}" for number in range(MOST_MEANT)
    ]
