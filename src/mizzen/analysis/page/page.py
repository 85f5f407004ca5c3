"""The page: its title, the numbers that one looks at first, its sections."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.findings import Findings
from mizzen.analysis.page.accuracy import accuracy
from mizzen.analysis.page.configuration import configuration, proof
from mizzen.analysis.page.graph import network
from mizzen.analysis.page.layers import layers_section
from mizzen.analysis.page.listing import commands
from mizzen.analysis.page.memory import memory
from mizzen.analysis.page.roofline import roofline
from mizzen.analysis.page.subgraphs import subgraphs
from mizzen.analysis.page.time import time
from mizzen.report.page import Facts, Figure, Figures, Page, Section
from mizzen.report.words import count, duration, memory_name, millijoules, per_second, share, size


def report_page(findings: Findings) -> Page:
    """Return the page about an artifact; sections of which nothing is known say so."""
    sections = (
        *_asked(findings),
        *subgraphs(findings),
        layers_section(findings),
        network(findings),
        time(findings),
        memory(findings),
        roofline(findings),
        *accuracy(findings),
        *configuration(findings),
        proof(findings),
        commands(findings),
    )
    on = f" on {findings.accelerator}" if findings.accelerator else ""
    return Page(f"{findings.model}{on}", _summary(findings), sections, (_figures(findings),))


def _summary(findings: Findings) -> str:
    report = findings.compilation
    if report is None:
        return f"{findings.name}, compiled elsewhere: what its command streams say."
    names = [report.configuration.get(key) for key in ("system_config", "memory_mode")]
    settings = ", ".join(str(name) for name in names if name)
    by = f"compiled by {report.compiler}" if report.on_npu else "nothing of it on an NPU"
    return f"{findings.name}, {by}" + (f" for {settings}." if settings else ".")


def _asked(findings: Findings) -> Iterator[Section]:
    if findings.asked is not None:
        title, facts = findings.asked
        yield Section(title, (Facts(facts),))


def _figures(findings: Findings) -> Figures:
    return Figures((*_time(findings), *_placement(findings), *_memory(findings), *_proof(findings)))


def _time(findings: Findings) -> Iterator[Figure]:
    cost, report = findings.cost, findings.compilation
    time = cost.time if cost is not None else None if report is None else report.time
    if time is None:
        return
    if time.seconds:
        rate = f"{per_second(time.inferences_per_second)} inferences per second"
        at = f"{rate} at {time.clock_hz / 1e6:g} MHz, estimated"
        yield Figure("Inference", duration(time.seconds), at)
    yield from _energy(findings)
    cpu = f", {time.cpu_cycles:,} of them on the CPU" if time.cpu_cycles else ""
    yield Figure("Cycles", f"{time.cycles:,}", f"estimated{cpu}")


def _energy(findings: Findings) -> Iterator[Figure]:
    cost, report = findings.cost, findings.compilation
    energy = cost.energy if cost is not None else None if report is None else report.energy
    if energy is not None:
        said = f"{energy.low_mj:#.2g} to {energy.high_mj:#.2g}, by {'; '.join(energy.sources)}"
        yield Figure("Energy", millijoules(energy.mj), said)


def _placement(findings: Findings) -> Iterator[Figure]:
    report = findings.compilation
    if report is None:
        return
    work = f"{share(report.macs_on_npu, report.macs)} of {count(report.macs, 'MAC')}"
    operators = f"{len(report.on_npu)} of {len(report.placements)}"
    yield Figure("On the NPU", operators, f"operators, {work}" if report.macs else "operators")


def _memory(findings: Findings) -> Iterator[Figure]:
    memory, report = findings.memory, findings.compilation
    if memory is not None:
        for name, used_bytes in memory.by_memory.items():
            yield Figure(_capital(memory_name(name)), size(used_bytes), f"{used_bytes:,} bytes")
        if memory.arena_bytes is not None:
            label = "Tensor arena"
            yield Figure(label, size(memory.arena_bytes), f"{memory.arena_bytes:,} bytes, for TFLM")
        return
    if report is not None:
        for area in report.areas:
            label = f"{_capital(area.name)} in {memory_name(area.memory)}"
            yield Figure(label, size(area.used_bytes), f"{area.used_bytes:,} bytes")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _proof(findings: Findings) -> Iterator[Figure]:
    report = findings.compilation
    if report is None or not report.proof.inputs:
        return
    evidence = report.proof
    exact = "Exact but for roundings" if evidence.bounded else "Bit-exact"
    said = f"wrong at {count(len(evidence.differing), 'operator')}" if evidence.differing else exact
    yield Figure("Proof", said, f"on {count(evidence.inputs, 'input')}")
