"""Networks that Vela gets wrong, by our own rules: on the NPU, and what TFLite Micro computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import mizzen
from mizzen.report import Device

from ...differential.test_found_by_fuzzing import (  # noqa: TID252 tests are no package with a name
    AVOIDED,
    MISPLACED,
    U55,
    any_inputs,
    off,
    with_a_part,
)

OURS = {
    **{name: AVOIDED[name][0] for name in ("RELU6", "RELU6 int16")},
    **{
        f"{mover}, {kind}": partial(with_a_part, mover, kind)
        for accelerator, mover, kind in MISPLACED
        if accelerator == U55
    },
}


@pytest.mark.parametrize("accelerator", [U55, "ethos-u65-256"])
@pytest.mark.parametrize("build", OURS.values(), ids=OURS)
def test_our_own_code_is_right_where_the_compiler_s_is_not(
    build: Callable[[], bytes], accelerator: str
) -> None:
    data = build()
    artifact = mizzen.compile(data, accelerator, target_options={"generator": "best"})
    assert not any(off(data, artifact, any_inputs(artifact, 64)))
    assert artifact.report is not None
    assert all(row.device is Device.NPU for row in artifact.report.placements)
    assert [row.is_corrected for row in artifact.report.code] == [True]
