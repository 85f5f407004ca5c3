"""What an Ethos-N78 supports: Arm's support queries as tables of rules.

Each operation has an ordered list of rules. The first that is broken decides the level and gives
the library's message; a network can be compiled if all its operations are Supported.

The answers are the library's but where its 32-bit numbers wrap round: here, feature maps of 4 GiB
are too large, and a window larger than its plane leaves an extent of 0.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.hpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from mizzen.diagnostics import Reason, fail
from mizzen.targets.ethos_n import network as net
from mizzen.targets.ethos_n.config import Capabilities, Profile
from mizzen.targets.ethos_n.legal import (
    boundary_rules,
    convolution_rules,
    elementwise_rules,
    movement_rules,
    pooling_rules,
)
from mizzen.targets.ethos_n.legal.tensor_rules import BOTH, V25_03, Case, OperationRule, Step, rule
from mizzen.targets.ethos_n.tensors import TensorInfo
from mizzen.targets.rules import SENTENCE, ForEach, Level, judged, rules_of

__all__ = [
    "OPERATIONS",
    "Answer",
    "Entry",
    "Level",
    "reasons",
    "rules",
    "supported",
]

ANY_NUMBER = -1
ESTIMATED = f"{SENTENCE} (only its performance can be estimated)"


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation that can be asked about.

    inputs    how many it takes; ANY_NUMBER for as many as there are
    table     its rules in the order of the library's tests
    profiles  the releases that have it
    """

    inputs: int
    table: tuple[Step[Any], ...]
    profiles: tuple[Profile, ...] = BOTH


OPERATIONS: dict[type[net.Operation], Entry] = {
    net.Input: Entry(0, boundary_rules.INPUT),
    net.Constant: Entry(0, boundary_rules.CONSTANT),
    net.Output: Entry(1, boundary_rules.OUTPUT),
    net.Convolution: Entry(3, convolution_rules.CONVOLUTION),
    net.DepthwiseConvolution: Entry(3, convolution_rules.DEPTHWISE_CONVOLUTION),
    net.TransposeConvolution: Entry(3, convolution_rules.TRANSPOSE_CONVOLUTION),
    net.FullyConnected: Entry(3, convolution_rules.FULLY_CONNECTED),
    net.Concatenation: Entry(ANY_NUMBER, movement_rules.CONCATENATION),
    net.Split: Entry(1, movement_rules.SPLIT),
    net.Addition: Entry(2, elementwise_rules.ADDITION),
    net.Multiplication: Entry(2, elementwise_rules.MULTIPLICATION, V25_03),
    net.ReinterpretQuantization: Entry(1, elementwise_rules.REINTERPRET_QUANTIZATION),
    net.Requantize: Entry(1, elementwise_rules.REQUANTIZE),
    net.Relu: Entry(1, elementwise_rules.RELU),
    net.LeakyRelu: Entry(1, elementwise_rules.LEAKY_RELU),
    net.Sigmoid: Entry(1, elementwise_rules.SIGMOID),
    net.Tanh: Entry(1, elementwise_rules.TANH),
    net.MeanXy: Entry(1, pooling_rules.MEAN_XY),
    net.Pooling: Entry(1, pooling_rules.POOLING),
    net.Reshape: Entry(1, movement_rules.RESHAPE),
    net.DepthToSpace: Entry(1, movement_rules.DEPTH_TO_SPACE),
    net.SpaceToDepth: Entry(1, movement_rules.SPACE_TO_DEPTH),
    net.Transpose: Entry(1, movement_rules.TRANSPOSE),
    net.Resize: Entry(1, movement_rules.RESIZE),
    net.StandalonePadding: Entry(1, movement_rules.STANDALONE_PADDING, V25_03),
    net.EstimateOnly: Entry(ANY_NUMBER, boundary_rules.ESTIMATE_ONLY),
}
"""Every operation, in the order of `operations`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the library answers.

    outputs  the infos of what the operation makes; none if the library stops before it knows them
    message  its words; for what is Supported empty, or a remark
    """

    level: Level
    outputs: tuple[TensorInfo, ...]
    message: str

    def __bool__(self) -> bool:
        return self.level is Level.SUPPORTED


def supported(
    query: net.Query,
    capabilities: Capabilities,
    profile: Profile = Profile.V23_02,
    expected: tuple[TensorInfo, ...] | None = None,
) -> Answer:
    """Answer a support query as a release of the library does, word for word.

    `expected` are output infos to compare with; one without elements is not compared. An operation
    that a release does not have is Unsupported, in our words. E913 for a wrong number of inputs.
    """
    case = _case(query.operation, query.inputs, capabilities, expected)
    message, filled = "", False
    for condition, breach in judged(_table(type(query.operation), profile), case):
        if breach is None:
            filled = filled or condition.fills
            continue
        message = condition.text(breach)
        if condition.level is not Level.SUPPORTED:
            return Answer(condition.level, case.outputs if filled else (), message)
    return Answer(Level.SUPPORTED, case.outputs, message)


@lru_cache(maxsize=4096)
def reasons(
    operation: net.Operation,
    inputs: tuple[TensorInfo, ...],
    capabilities: Capabilities,
    profile: Profile = Profile.V23_02,
) -> tuple[Reason, ...]:
    """Tell why an operation is not Supported; none if it is. E913 for a wrong number of inputs.

    The rules that make it EstimateOnly, up to the first that makes it Unsupported: what comes
    after that one may not mean anything. Answers are kept: a covered graph, the network made of it
    and what compiles that ask the same.
    """
    case, kind = _case(operation, inputs, capabilities, None), type(operation).__name__
    source = f"Ethos-N driver stack {profile.value}, Is{kind}Supported"
    by_rule: dict[str, Reason] = {}
    for condition, breach in judged(_table(type(operation), profile), case):
        if breach is not None and condition.level is not Level.SUPPORTED:
            sentence = ESTIMATED if condition.level is Level.ESTIMATE_ONLY else SENTENCE
            by_rule.setdefault(
                condition.id, condition.reason(breach, kind, sentence=sentence, source=source)
            )
            if condition.level is Level.UNSUPPORTED:
                break
    return tuple(by_rule.values())


def rules(kind: type[net.Operation], profile: Profile) -> tuple[OperationRule[Any], ...]:
    """Return the rules of an operation of a release, in the order of the tests."""
    return rules_of(_table(kind, profile))


def _case(
    operation: net.Operation,
    inputs: tuple[TensorInfo, ...],
    capabilities: Capabilities,
    expected: tuple[TensorInfo, ...] | None,
) -> Case[Any]:
    wanted = OPERATIONS[type(operation)].inputs
    if wanted not in (ANY_NUMBER, len(inputs)):
        raise fail(
            "E913",
            f"{type(operation).__name__} takes {wanted} inputs, and is asked about with "
            f"{len(inputs)}",
            help="weighted operations take the feature map, the bias and the weights",
        )
    if isinstance(operation, net.Input | net.Constant):
        # What their rules are about is their own tensor.
        inputs = (operation.info,)
    return Case(operation, inputs, capabilities, expected)


@cache
def _table(kind: type[net.Operation], profile: Profile) -> tuple[Step[Any], ...]:
    """Return the rules that hold in a release."""
    entry = OPERATIONS[kind]
    if profile not in entry.profiles:
        return (_absent(kind, profile, entry.profiles),)
    return tuple(step for step in entry.table if isinstance(step, ForEach) or profile in step.on)


def _absent(
    kind: type[net.Operation], profile: Profile, having: tuple[Profile, ...]
) -> OperationRule[Any]:
    releases = " or ".join(release.value for release in having)
    return rule("release").must_have(
        f"release {releases} of the driver stack",
        "write it with other operations",
        f"{kind.__name__} is not in release {profile.value}",
    )(lambda _: profile.value)
