"""Support queries against the answers of Arm's own library."""

from __future__ import annotations

import pytest

from mizzen.targets.ethos_n.config import Profile, capabilities_of, find_variant
from mizzen.targets.ethos_n.legal import Answer, reasons, supported
from mizzen.targets.ethos_n.network import Operation, SpaceToDepth, Split, StandalonePadding
from mizzen.targets.ethos_n.tensors import TensorInfo

from .golden import needs_golden, queries
from .network_text import parse_query

PROFILES = {"23": Profile.V23_02, "25": Profile.V25_03}
NOT_PRINTED = (Split, SpaceToDepth, StandalonePadding)
"""Operations whose output infos the recorded answers leave out."""


def text_of(answer: Answer, operation: Operation) -> str:
    """Write an answer as it is recorded."""
    parts = [answer.level.name[0]]
    if not isinstance(operation, NOT_PRINTED):
        info = answer.outputs[0] if answer.outputs else TensorInfo((0, 0, 0, 0))
        q = info.quantization
        parts += [*map(str, info.shape), info.data_type.name.lower()]
        parts += [str(q.zero_point), f"{q.scale:.9g}"]
    return " ".join([*parts, "|", answer.message]).rstrip()


@needs_golden
@pytest.mark.parametrize(("release", "count"), [("23", 13_296), ("25", 14_594)])
def test_every_recorded_answer_is_given(release: str, count: int) -> None:
    wrong: list[str] = []
    asked = 0
    for variant, line, recorded in queries(release):
        query = parse_query(line)
        capabilities = capabilities_of(find_variant(variant))
        given = text_of(supported(query, capabilities, PROFILES[release]), query.operation)
        asked += 1
        if given != recorded.rstrip():
            wrong.append(f"{variant} {line[:200]}: {recorded!r}, not {given!r}")
    assert not wrong, "\n".join(wrong[:10])
    assert asked == count


@needs_golden
@pytest.mark.parametrize("release", ["23", "25"])
def test_what_is_not_supported_has_a_reason(release: str) -> None:
    for variant, line, recorded in queries(release):
        query = parse_query(line)
        capabilities = capabilities_of(find_variant(variant))
        found = reasons(query.operation, query.inputs, capabilities, PROFILES[release])
        assert bool(found) == (recorded[0] != "S"), line[:200]
