"""How comparisons read in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.layout import (
    GAP,
    NARROWEST_LAST_COLUMN,
    count,
    fields,
    name_in,
    named_table,
    paragraph,
    per_second,
    share,
    size,
    table,
)
from mizzen.diagnostics import Origin
from mizzen.escaping import one_line
from mizzen.report.comparison import Outcome
from mizzen.report.precision import BINS

if TYPE_CHECKING:
    from mizzen.analysis.comparison.beside import Beside
    from mizzen.report.comparison import Comparison, FirstDifference, LayerComparison
    from mizzen.report.precision import LayerPrecision, Precision
    from mizzen.report.versions import Version, VersionGrowth


def comparison_text(comparison: Comparison, *, width: int) -> str:
    """Say what was compared, how many elements differ, and what was found of each layer."""
    head = fields(_head(comparison), width=width)
    text = named_table(
        [_row(layer) for layer in comparison.layers],
        [layer.name for layer in comparison.layers],
        width=width,
        headings=("#", "type", "on", "elements", "differ", "steps", "found", "output"),
        right=(0, 3, 4, 5),
    )
    title = one_line(f"{comparison.model} beside {comparison.reference}")
    layers = f"\n\nLayers\n{text}" if comparison.layers else ""
    first = "" if comparison.first is None else f"\n\n{_first(comparison.first, width)}"
    return f"{title}\n{head}{layers}{first}"


def _first(first: FirstDifference, width: int) -> str:
    """Say which operation of a stream is the first that is wrong, and what it does."""
    place = f"{first.index} of step {first.step}, {first.kind} at word {first.word}"
    rows = [("operation", f"{place}, byte {first.offset_bytes:,}")]
    if first.operator != Origin():
        rows.append(("computes", str(first.operator)))
    rows.append(("wrong", first.evidence.value))
    if first.differing:
        where = ", ".join(map(str, first.where))
        rows.append(
            ("differ", f"{first.differing:,} of {first.elements:,} elements, by up to "
             f"{first.largest:,}, the first at [{where}]: {first.came} instead of {first.expected}")
        )  # fmt: skip
    if first.fault is not None:
        rows.append(("stops", f"{first.fault.code}: {first.fault.message}"))
    return f"First wrong operation\n{fields(rows, width=width)}"


def _head(comparison: Comparison) -> list[tuple[str, str]]:
    made = "the user's own" if comparison.seed is None else f"made with seed {comparison.seed}"
    in_row = f" of {comparison.run} inferences in a row" if comparison.run > 1 else ""
    inputs = (
        f"{count(comparison.inputs, 'stream' if comparison.run > 1 else 'input')}{in_row}, {made}"
    )
    counts = [(comparison.count(outcome), outcome.value) for outcome in Outcome]
    layers = ", ".join(f"{number} {word}" for number, word in counts if number)
    layers = layers or "none seen: the stream's tensors have only their numbers"
    return [
        ("inputs", inputs),
        ("outputs", f"{comparison.differing:,} of {comparison.elements:,} elements differ"),
        ("layers", layers),
        *_constants(comparison),
    ]


def _constants(comparison: Comparison) -> Iterator[tuple[str, str]]:
    held = comparison.constants
    if held is not None:
        wrong = f", {count(len(held.wrong), 'difference')}" if held.wrong else ", all the model's"
        text = f"of {count(held.compared, 'operation')}{wrong}" if held.compared else "not compared"
        yield "constants", text


def _row(layer: LayerComparison) -> tuple[str, ...]:
    told = layer.outcome.value if layer.into is None else f"{layer.outcome.value} with {layer.into}"
    if not layer.elements:
        return str(layer.index), layer.kind, layer.device.value, "-", "-", "-", told
    numbers = f"{layer.elements:,}", f"{layer.differing:,}", f"{layer.steps:g}"
    return str(layer.index), layer.kind, layer.device.value, *numbers, told


def versions_text(versions: Sequence[Version], *, width: int) -> str:
    """List versions side by side, with what of their configurations tells them apart."""
    differing = _telling(versions)
    energies = ["energy"] if any(version.energy for version in versions) else []
    labels = (LABELS.get(name, name) for name in differing)
    headings = ("model", *labels, *FIGURES, *energies)
    cells = [
        (
            *(version.configuration.get(name, "-") for name in differing),
            *_figures(version),
            *(_energy(version) for _ in energies),
        )
        for version in versions
    ]
    columns = zip(headings[1:], *cells, strict=True)
    room = width - len(GAP) - sum(len(GAP) + max(map(len, column)) for column in columns)
    models = short_models([version.model for version in versions], room)
    lines = [(model, *others) for model, others in zip(models, cells, strict=True)]
    right = tuple(range(1 + len(differing), len(headings)))
    grown = "".join(f"\n{paragraph(text, width=width, indent=GAP)}" for text in _flash(versions))
    sources = dict.fromkeys(
        source for version in versions if version.energy for source in version.energy.sources
    )
    parts = ["Costs (cycles are estimates)", wide(lines, headings=headings, right=right)]
    if sources:
        said = f"energy of an inference: figures of {'; '.join(sources)}"
        parts.append(paragraph(said, width=width, indent=GAP))
    return "\n".join(parts) + grown


def _energy(version: Version) -> str:
    energy = version.energy
    if energy is None:
        return "-"
    return f"{energy.mj:#.2g} mJ ({energy.low_mj:#.2g} to {energy.high_mj:#.2g})"


SHOWN_LAYERS = 20
"""Rows of layers: those in which Mizzen's code is slowest beside the other."""


def beside_text(found: Beside, *, width: int) -> str:
    """Say what an artifact and Mizzen's code cost, and which layers are slower."""
    layers = found.by_difference
    slower = sum(layer.slower > 0 for layer in layers)
    rows = [
        (str(layer.index), layer.kind, f"{layer.theirs:,}", f"{layer.ours:,}",
         f"{layer.slower:+,}", layer.their_bound or "-", layer.our_bound or "-")
        for layer in layers[:SHOWN_LAYERS]
    ]  # fmt: skip
    text = named_table(
        rows,
        [layer.name for layer in layers[:SHOWN_LAYERS]],
        width=width,
        headings=("#", "type", "artifact", "mizzen", "slower", "waits for", "waits for", "output"),
        right=(0, 2, 3, 4),
    )
    head = f"Layers, Mizzen's slowest first: slower in {slower} of {len(layers)}"
    if len(layers) > SHOWN_LAYERS:
        head += f", {SHOWN_LAYERS} shown"
    if found.unknown:
        head += f"; {found.unknown:,} cycles of the artifact are of no known layer"
    costs = versions_text([found.theirs, found.ours], width=width)
    said = paragraph(head, width=width, indent="")
    return f"{costs}\n\n{said}\n{text}"


def _flash(versions: Sequence[Version]) -> Iterator[str]:
    """Say which version is faster than the first of its network, and takes more flash for it."""
    firsts: dict[str, Version] = {}
    for version in versions:
        first = firsts.setdefault(version.model, version)
        more = version.flash_bytes - first.flash_bytes
        if version.cycles < first.cycles and more > 0:
            percent = 100 * more / max(first.flash_bytes, 1)
            yield (
                f"{version.title} takes fewer cycles and {more:,} bytes ({percent:.1f} %) more "
                f"flash than {first.title}"
            )


def _telling(versions: Sequence[Version]) -> list[str]:
    """Return the words of the configuration that differ and do not follow from others before."""
    names = list(dict.fromkeys(name for version in versions for name in version.configuration))
    telling = names[:1]
    for name in names[1:]:
        before = {tuple(map(version.configuration.get, telling)) for version in versions}
        after = {tuple(map(version.configuration.get, (*telling, name))) for version in versions}
        if len(after) > len(before):
            telling.append(name)
    return telling


def short_models(models: Sequence[str], room: int) -> list[str]:
    """Return models in `room` letters, their ends where they are longer; whole if those are one."""
    short = {model: name_in(model, max(room, NARROWEST_LAST_COLUMN)) for model in models}
    told_apart = len(set(short.values())) == len(short)
    return [short[model] if told_apart else one_line(model) for model in models]


LABELS = {"system_config": "system", "memory_mode": "memory mode"}
FIGURES = ("cycles", "inf/s", "MAC use", "SRAM", "flash", "file", "on NPU")


def _figures(version: Version) -> tuple[str, ...]:
    return (
        f"{version.cycles:,}",
        per_second(version.inferences_per_second),
        "-" if version.utilisation is None else f"{100 * version.utilisation:.1f} %",
        size(version.sram_bytes),
        size(version.flash_bytes),
        size(version.file_bytes),
        f"{version.operators - version.cpu_operators}/{version.operators}",
    )


def wide(body: Sequence[Sequence[str]], *, headings: Sequence[str], right: Sequence[int]) -> str:
    """Write a table whose last column is a number too, so that nothing in it is wrapped."""
    lines = [tuple(headings), *body]
    last = max(len(line[-1]) for line in lines)
    padded = [(*line[:-1], line[-1].rjust(last)) for line in lines]
    widths = [max(len(line[i]) for line in padded) for i in range(len(headings))]
    return "\n".join(
        "  " + "  ".join(
            cell.rjust(column) if i in right else cell.ljust(column)
            for i, (cell, column) in enumerate(zip(line, widths, strict=True))
        )
        for line in padded
    )  # fmt: skip


def growth_text(versions: Sequence[VersionGrowth], baseline: str, *, width: int) -> str:
    """Say what has become of each measure since the baseline."""
    cells = [
        (
            grown.version.title,
            growth.measure.value,
            f"{growth.before:,}",
            f"{growth.now:,}",
            f"{growth.difference:+,}" if growth.difference else "0",
            str(growth.allowance),
            "" if growth.allowed else "grown too much",
        )
        for grown in versions
        for growth in grown.growths
    ]
    if not cells:
        return f"Since {one_line(baseline)}\n  nothing of this is in it"
    titles = list(dict.fromkeys(line[0] for line in cells))
    headings = ("measure", "before", "now", "difference", "allowed", "")
    parts = [f"Since {one_line(baseline)}"]
    for title in titles:
        lines = [line[1:] for line in cells if line[0] == title]
        parts.append(f"  {one_line(title)}")
        text = table(lines, width=width, headings=headings, right=(1, 2, 3, 4), indent="    ")
        parts.append(text)
    return "\n".join(parts)


def precision_text(precision: Precision, *, width: int) -> str:
    """List the layers of both networks, the noisiest first, and how the worst one's errors lie."""
    facts = [("inputs", f"{count(precision.inputs, 'input')}, {precision.source.value}")]
    facts.append(("layers", f"{len(precision.layers)} in both"))
    if precision.unmatched:
        facts.append(
            (
                "not paired",
                ", ".join(f"{unmatched[1]} {unmatched[0]}" for unmatched in precision.unmatched),
            )
        )
    title = one_line(f"{precision.model} beside {precision.floating}")
    parts = [f"{title}\n{fields(facts, width=width)}"]
    lines = named_table(
        [_precision_row(layer) for layer in precision.worst_first],
        [layer.name for layer in precision.worst_first],
        width=width,
        headings=("#", "type", "SQNR", "largest", "mean", "in steps", "saturated", "output"),
        right=(0, 2, 3, 4, 5, 6),
    )
    parts.append(f"Layers, the worst first (errors absolute)\n{lines}")
    if precision.layers:
        parts.append(_histogram(precision.worst_first[0]))
    return "\n\n".join(parts)


def _precision_row(layer: LayerPrecision) -> tuple[str, ...]:
    return (
        str(layer.index),
        layer.kind,
        "-" if layer.sqnr_db is None else f"{layer.sqnr_db:.1f} dB",
        f"{layer.largest:.3g}",
        f"{layer.mean:.3g}",
        f"{layer.largest / layer.step:.1f}" if layer.step else "-",
        share(round(layer.saturated * layer.elements), layer.elements),
    )


def _histogram(layer: LayerPrecision) -> str:
    edges = [f"up to {edge:g}" for edge in BINS] + ["beyond"]
    most = max(*layer.bins, 1)
    cells = [
        (edge, share(number, layer.elements), "#" * round(BAR_WIDTH * number / most))
        for edge, number in zip(edges, layer.bins, strict=True)
    ]
    lines = "\n".join(f"  {edge:<9} {part:>7}  {bar}".rstrip() for edge, part, bar in cells)
    return f"Errors of layer {layer.index} in steps of {layer.step:.3g}\n{lines}"


BAR_WIDTH = 40
