"""Versions of networks as Markdown for a pull request: what grew, and the layers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.escaping import markdown_code
from mizzen.report.versions import OTHER, Growth, LayerCost, Measure, VersionGrowth

HEADINGS = {
    Measure.CYCLES: "cycles (estimated)",
    Measure.SRAM: "SRAM",
    Measure.FLASH: "flash",
    Measure.FILE: "file",
    Measure.CPU_OPERATORS: "operators on the CPU",
}


def markdown(rows: Sequence[VersionGrowth]) -> str:
    """Return a section for each version: a table of old and new, the layers folded away."""
    parts = ["## What the network costs", ""]
    for row in rows:
        parts += [*_section(row), ""]
    return "\n".join(parts).rstrip() + "\n"


def _section(row: VersionGrowth) -> Iterator[str]:
    mark = "" if row.holds else " — grown past its allowance"
    yield f"### {markdown_code(row.version.model)}{mark}"
    yield ""
    yield ", ".join(map(markdown_code, row.version.configuration.values()))
    yield ""
    if row.before is None:
        yield "| | now |"
        yield "|---|---:|"
        for measure in Measure:
            yield f"| {HEADINGS[measure]} | {measure.of(row.version):,} |"
    else:
        yield "| | before | now | difference | allowed |"
        yield "|---|---:|---:|---:|---:|"
        yield from (_line(growth) for growth in row.growths)
    yield ""
    yield from _layers(row)


def _line(row: Growth) -> str:
    said = f"{row.difference:+,}" if row.difference else "0"
    if row.difference and row.before:
        said += f" ({100 * row.difference / row.before:+.1f} %)"
    if not row.allowed:
        said = f"**{said}**"
    return f"| {HEADINGS[row.measure]} | {row.before:,} | {row.now:,} | {said} | {row.allowance} |"


def _layers(row: VersionGrowth) -> Iterator[str]:
    before = {_name(layer): layer for layer in row.before.layers} if row.before else {}
    yield f"<details><summary>{len(row.version.layers)} layers</summary>"
    yield ""
    yield "| # | layer | on | cycles before | cycles now | difference |"
    yield "|---:|---|---|---:|---:|---:|"
    for layer in sorted(row.version.layers, key=lambda layer: -_more(layer, before)):
        old = before.get(_name(layer))
        was = "" if old is None else f"{old.cycles:,}"
        more = "" if old is None else f"{_more(layer, before):+,}"
        yield (
            f"| {layer.index} | {markdown_code(_name(layer))} | {layer.device.value} | {was} | "
            f"{layer.cycles:,} | {more if more != '+0' else '0'} |"
        )
    was = "" if row.before is None else f"{row.before.other_cycles:,}"
    more = row.version.other_cycles - row.before.other_cycles if row.before else 0
    yield f"| | {OTHER} | | {was} | {row.version.other_cycles:,} | {f'{more:+,}' if more else ''} |"
    now = {_name(layer) for layer in row.version.layers}
    for name in (name for name in before if name not in now):
        yield f"| | {markdown_code(name)} | gone | {before[name].cycles:,} | | |"
    yield ""
    yield "</details>"


def _more(layer: LayerCost, before: dict[str, LayerCost]) -> int:
    old = before.get(_name(layer))
    return 0 if old is None else layer.cycles - old.cycles


def _name(layer: LayerCost) -> str:
    return f"{layer.kind} {layer.name or layer.index}"
