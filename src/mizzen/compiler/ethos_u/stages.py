"""What our own generator makes of a network, one form after the other, to be read.

The compiler schedules several sequences for a network and takes the one that costs least; here is
the one that it tries first. What no rule takes is named with the reason, and what lies between is
gone through in the parts that rules take.

It must not know Vela, nor how what comes is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from mizzen.artifact.steps import read_network
from mizzen.compiler.compile import ONNX, front_end_of, require_source
from mizzen.compiler.ethos_u.regions import STANDARD, WINDOW_LIMITS
from mizzen.compiler.ethos_u.search.candidates import arranged
from mizzen.compiler.folding import folded
from mizzen.compiler.integers import integers_of
from mizzen.compiler.options import Configuration
from mizzen.compiler.source import Extents, Source
from mizzen.diagnostics import Origin, fail
from mizzen.flatbuffer.tosa import is_tosa
from mizzen.frontends import tosa
from mizzen.frontends.tflite import require_quantized
from mizzen.frontends.tflite.lower import lower_with_state
from mizzen.graph import Graph, Operation, Value
from mizzen.report.words import short_name
from mizzen.targets.ethos_u.generator.cascade import peak_bytes, within
from mizzen.targets.ethos_u.generator.lower import Refusal, lower, lower_in_runs
from mizzen.targets.ethos_u.generator.operations import Schedule, Sequence
from mizzen.targets.ethos_u.generator.schedule import Limits, plain_bytes, schedule
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import ASKED

CACHE = "arena_cache_size"
"""The setting that says how much memory there is."""


class Stage(Enum):
    """A step of the generator after which there is something to read."""

    LOWER = "lower"
    """From the graph to a sequence of operations of the NPU."""
    ARRANGE = "arrange"
    """To another sequence that computes the same and costs less, in stripes if memory is short."""
    SCHEDULE = "schedule"
    """To blocks, layouts, addresses, and transfers."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A graph of integers, and the inputs and outputs whose bytes are unsigned in the file.

    subgraphs  that the file has; the graph is of the main one
    """

    graph: Graph
    unsigned: tuple[Value, ...] = ()
    subgraphs: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A network that rules take whole, or operations of it, in each of its forms.

    operations  of the graph, in its order
    arranged    None if that was not asked for; `schedule` too
    """

    operations: tuple[Operation, ...]
    lowered: Sequence
    arranged: Sequence | None = None
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """A network in all forms that were asked for, and the operations that no rule takes."""

    graph: Graph
    refusals: tuple[Refusal, ...]
    parts: tuple[Part, ...]


def own_configuration(configuration: Configuration) -> EthosUConfiguration:
    """Return the configuration of an NPU that Mizzen writes code of its own for. E576."""
    if isinstance(configuration, EthosUConfiguration):
        return configuration
    name = configuration.as_dict()["accelerator"]
    raise fail(
        "E576",
        "what becomes of a network step by step can be read for Ethos-U, whose code Mizzen writes "
        f"itself, and not for {name}",
        help="take --accelerator-config ethos-u55-128, or compile the network and give `mizzen "
        "inspect` the artifact",
    )


def network_of(source: Source, shapes: Extents) -> Network:
    """Return a TFLite, ONNX or TOSA file as a graph, as it is compiled; of TFLite the main one.

    shapes  what is said of extents that an ONNX network leaves open

    Raises E1xx as the front-ends do, E109 for a network that is compiled already, E168 for
    operators of ONNX that have no form.
    """
    data, name = source.data, source.name
    if front_end_of(source) is ONNX:
        return Network(readable(_integers_of_onnx(source, shapes)))
    if is_tosa(data, name):
        return Network(readable(tosa.read(data, name)))
    model = read_network(data, name)
    require_source(model)
    require_quantized(model)
    lowered = lower_with_state(folded(model, data).model)
    graph = readable(lowered.graph)
    edges = (*graph.inputs, *graph.outputs)
    unsigned = tuple(value for value in edges if lowered.is_unsigned(value))
    return Network(graph, unsigned, len(model.subgraphs))


def _integers_of_onnx(source: Source, shapes: Extents) -> Graph:
    from mizzen.compiler.onnx.compile import form_of, read_quantized
    from mizzen.compiler.onnx.host import OnnxLowering
    from mizzen.frontends.onnx.lowering.lower import lower as lower_onnx

    lowered = lower_onnx(read_quantized(source, shapes), WINDOW_LIMITS)
    graph = integers_of(OnnxLowering(lowered, source.stem, source.name), form_of, source.stem)
    STANDARD.run(graph)
    return graph


def readable(graph: Graph) -> Graph:
    """Shorten the names of a graph: all forms of a network say them again and again.

    Of names that a converter joined the first is left, with a number where several have the same.
    Origins do not name the file.
    """
    counts: dict[str, int] = {}
    results = (value for operation in graph for value in operation.results)
    for value in (*graph.inputs, *results):
        base = short_name(value.name)
        number = counts.setdefault(base, 0)
        counts[base] += 1
        value.name = f"{base}.{number}" if base and number else base
    for operation in graph:
        origin = operation.origin
        if origin is not None:
            name = origin.name and short_name(origin.name)
            short = replace(origin, model=None, name=name)
            operation.origin = None if short == Origin() else short
    return graph


def stages(network: Network, configuration: EthosUConfiguration, last: Stage) -> Stages:
    """Return what a network becomes, up to a step of the generator.

    Raises as arranging and scheduling do.
    """
    arch = configuration.accelerator.arch
    lowered = lower(network.graph, network.unsigned, arch)
    if lowered.sequence is not None:
        operations = tuple(network.graph.sorted())
        parts = [Part(operations, lowered.sequence)]
    else:
        parts = list(_runs(network, arch))
    made = tuple(_made(part, configuration, last) for part in parts)
    return Stages(network.graph, lowered.refusals, made)


def _runs(network: Network, arch: Arch) -> Iterator[Part]:
    for run in lower_in_runs(network.graph, network.unsigned, arch).runs:
        yield Part(run.operations, run.sequence)


def _made(part: Part, configuration: EthosUConfiguration, last: Stage) -> Part:
    if last is Stage.LOWER:
        return part
    limits = _limits(part.lowered, configuration)
    ways = arranged(part.lowered, configuration)
    sequence = ways[0] if configuration.mode.spills else _within(ways, limits)
    if last is Stage.ARRANGE:
        return Part(part.operations, part.lowered, sequence)
    scheduled = schedule(sequence, configuration, limits)
    return Part(part.operations, part.lowered, sequence, scheduled)


def _within(ways: list[Sequence], limits: Limits) -> Sequence:
    """Return the first of several sequences that needs no more memory, or else one in stripes."""
    limit_bytes = limits.scratch_bytes
    if limit_bytes is None:
        return ways[0]
    fitting = next((way for way in ways if peak_bytes(way) <= limit_bytes), None)
    if fitting is not None:
        return fitting
    striped = [chains for way in ways for chains in within(way, [limit_bytes], ())]
    if not striped:
        return ways[0]
    return min(striped, key=lambda chains: max(chains.live_bytes, limit_bytes)).sequence


def _limits(sequence: Sequence, configuration: EthosUConfiguration) -> Limits:
    """Return the memory that may be taken: what was asked for, or what tensors take by themselves.

    That is what they take in a schedule without a search.
    """
    if (CACHE, ASKED) in ((setting.name, setting.source) for setting in configuration.settings):
        return Limits(scratch_bytes=configuration.arena_cache_size_bytes)
    scratch = plain_bytes(sequence)
    return Limits(scratch_bytes=scratch)
