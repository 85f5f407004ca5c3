"""Put code of our own into a network that Vela compiled, where it may be taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mizzen.compiler.ethos_u.generator.constants import with_shared_constants
from mizzen.compiler.ethos_u.generator.costs import with_costs
from mizzen.compiler.ethos_u.generator.equality import Array, found_in_memory
from mizzen.compiler.ethos_u.generator.handed import Enclosed, enclosed
from mizzen.compiler.ethos_u.generator.least import least
from mizzen.compiler.ethos_u.generator.network import (
    NpuPart,
    arena_bytes,
    outliving,
    parts_of,
    with_program,
    with_programs,
)
from mizzen.compiler.ethos_u.generator.search import Found, keep, search
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.compiler.ethos_u.generator.written import Written, written
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex
from mizzen.targets.ethos_u.vela.generate import Compiled, StreamCommand

Searching = Callable[[Program, Source, EthosUConfiguration], Found]


def improved(compiled: Compiled, source: Source, configuration: EthosUConfiguration) -> Written:
    """Return a compiled network with faster code of our own where that may be taken.

    source  what Vela was given
    """
    return _improved(compiled, source, configuration, search)


def smallest(compiled: Compiled, source: Source, configuration: EthosUConfiguration) -> Written:
    """Return a compiled network with code of our own in less memory where that may be taken."""
    return _improved(compiled, source, configuration, least)


def _improved(
    compiled: Compiled, source: Source, configuration: EthosUConfiguration, search: Searching
) -> Written:
    network, parts = parts_of(compiled)
    if not parts:
        return written(compiled, ())
    try:
        return _made(compiled, network, parts, source, configuration, search)
    except Exception as error:
        if configuration.generator is not Generator.BEST:
            raise
        rows = [_failed(part.program, configuration, error).choice for part in parts]
        return written(compiled, tuple(rows))


def _made(
    compiled: Compiled,
    network: Model,
    parts: Sequence[NpuPart],
    source: Source,
    configuration: EthosUConfiguration,
    search: Searching,
) -> Written:
    if len(parts) == 1:
        return _alone(compiled, network, parts[0], source, configuration, search)
    found = _several(network, parts, source, configuration, search)
    if any(row.choice.is_own for row in found):
        programs = with_shared_constants(found, configuration)
        data = with_programs(compiled, parts, programs)
        compiled = replace(compiled, network=data, commands=tuple(_commands(found)))
        compiled = with_costs(compiled, programs, [row.timed for row in found], configuration)
    return written(compiled, tuple(row.choice for row in found))


def _alone(
    compiled: Compiled,
    network: Model,
    part: NpuPart,
    source: Source,
    configuration: EthosUConfiguration,
    search: Searching,
) -> Written:
    """Return a network of one NPU operator, which has the memory for itself."""
    source = replace(source, outliving=outliving(network, part))
    found = _found(part.program, source, configuration, search)
    if found.choice.is_own and configuration.generator is Generator.BEST:
        sizes = [arena_bytes(network, part, row) for row in (found.program, part.program)]
        if sizes[0] > sizes[1]:
            reason = f"with what the CPU hands on it takes {sizes[0]} bytes for {sizes[1]}"
            found = keep(part.program, configuration, Verdict.DEARER, reason)
    if found.choice.is_own:
        data = with_program(compiled, network, part, found.program)
        compiled = replace(compiled, network=data, commands=tuple(_commands([found])))
        compiled = with_costs(compiled, [found.program], [found.timed], configuration)
    return written(compiled, (found.choice,))


def _several(
    network: Model,
    parts: Sequence[NpuPart],
    source: Source,
    configuration: EthosUConfiguration,
    search: Searching,
) -> list[Found]:
    """Return what each of several NPU operators gets, whatever the others do."""
    source = replace(source, is_shared=True)
    try:
        programs = enclosed(network, parts)
    except MizzenError as error:
        reason = error.diagnostic.message
        return [keep(part.program, configuration, Verdict.REFUSED, reason) for part in parts]
    found: list[Found] = []
    given = _given([part.program for part in parts], [around.program for around in programs])
    for part, around, inputs in zip(parts, programs, given, strict=True):
        source = replace(source, inputs=inputs, held=around.held)
        row = _found(around.program, source, configuration, search)
        if row.choice.is_own and (hazard := _hazard(row.program, around)):
            row = keep(around.program, configuration, Verdict.HAZARD, hazard)
        own, named = row.program, part.program
        if row.choice.is_own:
            named = replace(own, inputs=named.inputs, outputs=named.outputs)
        found.append(replace(row, program=named))
    return list(_sharing(found))


def _given(named: Sequence[Program], programs: Sequence[Program]) -> list[list[Array] | None]:
    """Return what programs find in their inputs; None where they cannot be executed with it."""
    try:
        names = [{row.name for row in program.inputs} for program in named]
        return [*found_in_memory(programs, names)]
    except MizzenError:
        return [None] * len(programs)


def _hazard(program: Program, around: Enclosed) -> str:
    """Say what a program reads that nobody has written, or spoils for others; else empty."""
    found = find_hazards(program, around.surroundings).findings
    return f"a hazard: {found[0].diagnostic.message}" if found else ""


def _sharing(found: Sequence[Found]) -> Iterator[Found]:
    """Yield what operators get; code of our own is said to take the memory that all of them do."""
    most = [
        max(row.program.region_bytes.get(region, 0) for row in found)
        for region in (RegionIndex.SCRATCH, RegionIndex.SCRATCH_FAST)
    ]
    for row in found:
        own = row.choice.own
        if own is not None and row.choice.is_own:
            own = replace(own, arena_bytes=most[0], fast_bytes=most[1])
        yield replace(row, choice=replace(row.choice, own=own))


def _found(
    program: Program, source: Source, configuration: EthosUConfiguration, search: Searching
) -> Found:
    """Return what a search finds; where it fails by a mistake of ours, `best` has Vela's code."""
    try:
        return search(program, source, configuration)
    except Exception as error:
        if configuration.generator is not Generator.BEST:
            raise
        return _failed(program, configuration, error)


def _failed(program: Program, configuration: EthosUConfiguration, error: Exception) -> Found:
    """Return Vela's program where a mistake of ours ended the search, or what came of it."""
    said = f"{type(error).__name__} {error}".strip()
    reason = f"Mizzen's generator failed, which is a bug of ours, please report it: {said}"
    return keep(program, configuration, Verdict.FAILED, reason)


def _commands(found: Sequence[Found]) -> Iterator[StreamCommand]:
    for stream, row in enumerate(found):
        for offset, origin in sorted(row.program.origins.items()):
            yield StreamCommand(stream, offset, origin.operator)
