"""The operations of a chain, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.targets.ethos_u.generator.schedule.cost.traffic import Traffic
from mizzen.targets.ethos_u.generator.schedule.facts import Facts


def links(facts: Facts, traffic: Traffic) -> Iterator[tuple[Facts, Traffic]]:
    """Yield facts and traffic of each operation; of one that is no chain, its own."""
    last = len(facts.links)
    at = len(facts.inputs) - sum(len(link.inputs) for link in facts.links)
    first = replace(facts, inputs=facts.inputs[:at], links=())
    write = None if last else traffic.write
    yield first, Traffic(traffic.reads[:at], write, traffic.constants)
    for place, link in enumerate(facts.links, 1):
        start, at = at, at + len(link.inputs)
        yield link, Traffic(traffic.reads[start:at], traffic.write if place == last else None)
