"""What Mizzen compiles against what Arm's library, release 23.02, compiled of the same networks."""

from __future__ import annotations

import hashlib
import json
from functools import cache

import pytest

from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    BlockConfigRecord,
    MceOperation,
    McePle,
    PleOnly,
    PleOperation,
    Strategy,
    Upsample,
)
from mizzen.targets.ethos_n.compile import CompiledNetwork, compile_network
from mizzen.targets.ethos_n.config import (
    BLOCK_CONFIGS,
    VARIANTS,
    VariantConfiguration,
    capabilities_of,
    find_variant,
)
from mizzen.targets.ethos_n.timing import estimate

from .arms_containers import Answer, answers
from .golden import ETHOS_N, Compiled, compiled_networks, needs_golden
from .performance_json import as_json

NETWORKS = compiled_networks()


@cache
def compiled(case: Compiled) -> CompiledNetwork:
    """Compile a network for the variant that Arm compiled it for."""
    variant = find_variant(f"Ethos-N78_{case.variant}")
    return compile_network(case.network, VariantConfiguration(variant))


@needs_golden
@pytest.mark.parametrize("case", NETWORKS, ids=str)
def test_container_is_the_same_to_the_byte(case: Compiled) -> None:
    assert compiled(case).serialize() == case.encn


@needs_golden
def test_networks_of_arm_are_all_there() -> None:
    assert len(NETWORKS) == 92


@needs_golden
@pytest.mark.parametrize("case", NETWORKS, ids=str)
def test_passes_are_estimated_as_arms_library_estimates_them(case: Compiled) -> None:
    capabilities = capabilities_of(find_variant(f"Ethos-N78_{case.variant}"))
    found = as_json(estimate(compiled(case).passes, capabilities))
    assert found == case.path("perf.json").read_text()


@needs_golden
@pytest.mark.parametrize(
    "case", [case for case in NETWORKS if not case.name.startswith("mobilenet")], ids=str
)
def test_buffers_are_told_as_arms_library_tells_them(case: Compiled) -> None:
    summary = json.loads((ETHOS_N / "networks-23" / "summary.json").read_text())
    result = compiled(case)
    told = f"compiled 1 intermediate {result.intermediate_bytes}"
    for kind, buffers in (("in", result.inputs), ("out", result.outputs)):
        for row in buffers:
            told += (
                f" {kind}({row.size_bytes},op{row.source_operation_id},{row.source_output_index})"
            )
    assert told == summary[str(case)]["result"]


ANSWERS = answers()


@cache
def answered(answer: Answer) -> CompiledNetwork:
    """Compile a network as Arm did."""
    return compile_network(answer.network, answer.configuration)


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_container_has_the_digest_of_arms(answer: Answer) -> None:
    assert hashlib.sha256(answered(answer).serialize()).hexdigest() == answer.sha256


def test_networks_with_digests_use_everything() -> None:
    commands = [command for answer in ANSWERS for command in answered(answer).commands]
    passes = [command for command in commands if isinstance(command, McePle)]
    alone = [command for command in commands if isinstance(command, PleOnly)]
    assert {row.strategy for row in passes} == set(Strategy)
    assert {row.mce.operation for row in passes} == set(MceOperation)
    assert {row.mce.algorithm for row in passes} == set(Algorithm)
    assert {row.mce.upsample for row in passes} == set(Upsample)
    assert {str(row.block_config) for row in passes} >= {
        str(BlockConfigRecord(block.width, block.height)) for block in BLOCK_CONFIGS
    }
    kernels = {row.ple.operation for row in (*passes, *alone)}
    assert set(PleOperation) - kernels == {PleOperation.FAULT, PleOperation.TRANSPOSE_XY}
    assert {answer.configuration.variant.name for answer in ANSWERS} == set(VARIANTS)
