"""Versions of networks as Markdown for a pull request: what grew, and the layers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.escaping import markdown_code
from mizzen.report.versions import OTHER, Growth, GrowthMeasure, LayerCost, VersionGrowth
from mizzen.report.words import short_name

HEADINGS = {
    GrowthMeasure.CYCLES: "cycles (estimated)",
    GrowthMeasure.SRAM: "SRAM",
    GrowthMeasure.FLASH: "flash",
    GrowthMeasure.FILE: "file",
    GrowthMeasure.CPU_OPERATORS: "operators on the CPU",
}


def markdown(versions: Sequence[VersionGrowth]) -> str:
    """Return a section for each version: a table of old and new, the layers folded away."""
    parts = ["## What the network costs", ""]
    for grown in versions:
        parts += [*_section(grown), ""]
    return "\n".join(parts).rstrip() + "\n"


def _section(grown: VersionGrowth) -> Iterator[str]:
    mark = "" if grown.holds else " — grown past its allowance"
    yield f"### {markdown_code(grown.version.model)}{mark}"
    yield ""
    yield ", ".join(map(markdown_code, grown.version.configuration.values()))
    yield ""
    if grown.before is None:
        yield "| | now |"
        yield "|---|---:|"
        for measure in GrowthMeasure:
            yield f"| {HEADINGS[measure]} | {measure.of(grown.version):,} |"
    else:
        yield "| | before | now | difference | allowed |"
        yield "|---|---:|---:|---:|---:|"
        yield from (_line(growth) for growth in grown.growths)
    yield ""
    yield from _layers(grown)


def _line(growth: Growth) -> str:
    said = f"{growth.difference:+,}" if growth.difference else "0"
    if growth.difference and growth.before:
        said += f" ({100 * growth.difference / growth.before:+.1f} %)"
    if not growth.allowed:
        said = f"**{said}**"
    return (
        f"| {HEADINGS[growth.measure]} | {growth.before:,} | {growth.now:,} | {said} | "
        f"{growth.allowance} |"
    )


def _layers(grown: VersionGrowth) -> Iterator[str]:
    before = {_name(layer): layer for layer in grown.before.layers} if grown.before else {}
    yield f"<details><summary>{len(grown.version.layers)} layers</summary>"
    yield ""
    yield "| # | layer | on | cycles before | cycles now | difference |"
    yield "|---:|---|---|---:|---:|---:|"
    for layer in sorted(grown.version.layers, key=lambda layer: -_more(layer, before)):
        old = before.get(_name(layer))
        was = "" if old is None else f"{old.cycles:,}"
        more = "" if old is None else f"{_more(layer, before):+,}"
        yield (
            f"| {layer.index} | {_shown(_name(layer))} | {layer.device.value} | {was} | "
            f"{layer.cycles:,} | {more if more != '+0' else '0'} |"
        )
    was = "" if grown.before is None else f"{grown.before.other_cycles:,}"
    more = grown.version.other_cycles - grown.before.other_cycles if grown.before else 0
    yield (
        f"| | {OTHER} | | {was} | {grown.version.other_cycles:,} | {f'{more:+,}' if more else ''} |"
    )
    now = {_name(layer) for layer in grown.version.layers}
    for name in (name for name in before if name not in now):
        yield f"| | {_shown(name)} | gone | {before[name].cycles:,} | | |"
    yield ""
    yield "</details>"


def _more(layer: LayerCost, before: dict[str, LayerCost]) -> int:
    old = before.get(_name(layer))
    return 0 if old is None else layer.cycles - old.cycles


def _name(layer: LayerCost) -> str:
    return f"{layer.kind} {layer.name or layer.index}"


def _shown(name: str) -> str:
    return markdown_code(short_name(name))
