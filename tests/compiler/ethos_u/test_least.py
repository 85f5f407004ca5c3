"""The code in least memory is no slower than Vela's, right, and smaller by chains in stripes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mizzen.compiler.ethos_u.generator.improve import smallest
from mizzen.compiler.ethos_u.search.judging import judged, worse
from mizzen.compiler.ethos_u.generator.network import parts_of
from mizzen.compiler.ethos_u.generator.search import maps_bytes
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.config import Generator
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("micro_speech_quantized", 0.75),
        pytest.param("kws_ref_model", 0.75, marks=pytest.mark.sweep),
    ],
)
def test_less_memory_at_no_more_cycles(
    name: str, share: float, model_file: Callable[[str], Path]
) -> None:
    configuration = replace(resolve("ethos-u55-128"), generator=Generator.BEST)
    data = model_file(f"{name}.tflite").read_bytes()
    compiled = generate(data, configuration)
    assert isinstance(compiled, Compiled)
    (theirs,) = parts_of(compiled)[1]
    written = smallest(compiled, Source(data, NetworkForm.TFLITE), configuration)
    (ours,) = parts_of(replace(compiled, network=written.network))[1]
    costs = [judged(part.program, configuration).cost for part in (ours, theirs)]
    assert worse(*costs) == ""
    assert maps_bytes(costs[0]) <= share * maps_bytes(costs[1])
    assert not find_hazards(ours.program).findings
