"""How comparisons read in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.layout import count, fields, named_table, share, size, table
from mizzen.escaping import one_line
from mizzen.report.comparison import Outcome
from mizzen.report.precision import BINS

if TYPE_CHECKING:
    from mizzen.report.comparison import Comparison, LayerComparison
    from mizzen.report.precision import LayerPrecision, Precision
    from mizzen.report.versions import Version, VersionGrowth


def comparison_text(found: Comparison, *, width: int) -> str:
    """Say what was compared, how many elements differ, and what was found of each layer."""
    head = fields(_head(found), width=width)
    text = named_table(
        [_row(row) for row in found.layers],
        [row.name for row in found.layers],
        width=width,
        headings=("#", "type", "on", "elements", "differ", "steps", "found", "output"),
        right=(0, 3, 4, 5),
    )
    title = one_line(f"{found.model} beside {found.reference}")
    return f"{title}\n{head}\n\nLayers\n{text}"


def _head(found: Comparison) -> list[tuple[str, str]]:
    made = "the user's own" if found.seed is None else f"made with seed {found.seed}"
    in_row = f" of {found.run} inferences in a row" if found.run > 1 else ""
    inputs = f"{count(found.inputs, 'stream' if found.run > 1 else 'input')}{in_row}, {made}"
    counts = [(found.count(row), row.value) for row in Outcome]
    layers = ", ".join(f"{number} {word}" for number, word in counts if number)
    return [
        ("inputs", inputs),
        ("outputs", f"{found.differing:,} of {found.elements:,} elements differ"),
        ("layers", layers),
        *_constants(found),
    ]


def _constants(found: Comparison) -> Iterator[tuple[str, str]]:
    held = found.constants
    if held is not None:
        wrong = f", {count(len(held.wrong), 'difference')}" if held.wrong else ", all the model's"
        text = f"of {count(held.compared, 'operation')}{wrong}" if held.compared else "not compared"
        yield "constants", text


def _row(row: LayerComparison) -> tuple[str, ...]:
    told = row.outcome.value if row.into is None else f"{row.outcome.value} with {row.into}"
    if not row.elements:
        return str(row.index), row.kind, row.device.value, "-", "-", "-", told
    numbers = f"{row.elements:,}", f"{row.differing:,}", f"{row.steps:g}"
    return str(row.index), row.kind, row.device.value, *numbers, told


def versions_text(versions: Sequence[Version], *, width: int) -> str:
    """List versions side by side; what all of them share is said once."""
    names = list(dict.fromkeys(name for row in versions for name in row.configuration))
    values = {
        name: {row.configuration[name] for row in versions if name in row.configuration}
        for name in names
    }
    differing = [name for name in names if len(values[name]) > 1] or names[:1]
    headings = ("model", *(LABELS.get(name, name) for name in differing), *FIGURES)
    rows = [
        (row.model, *(row.configuration.get(name, "-") for name in differing), *_figures(row))
        for row in versions
    ]
    right = tuple(range(1 + len(differing), len(headings)))
    return f"Costs (cycles are estimates)\n{wide(rows, headings=headings, right=right)}"


LABELS = {"system_config": "system", "memory_mode": "memory mode"}
FIGURES = ("cycles", "compiler's", "MAC use", "SRAM", "flash", "file", "on NPU")


def _figures(row: Version) -> tuple[str, ...]:
    return (
        f"{row.cycles:,}",
        "-" if row.compiler_cycles is None else f"{row.compiler_cycles:,}",
        "-" if row.utilisation is None else f"{100 * row.utilisation:.1f} %",
        size(row.sram_bytes),
        size(row.flash_bytes),
        size(row.file_bytes),
        f"{row.operators - row.cpu_operators}/{row.operators}",
    )


def wide(rows: Sequence[Sequence[str]], *, headings: Sequence[str], right: Sequence[int]) -> str:
    """Write a table whose last column is a number too, so that nothing in it is wrapped."""
    lines = [tuple(headings), *rows]
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


def growth_text(rows: Sequence[VersionGrowth], baseline: str, *, width: int) -> str:
    """Say what has become of each measure since the baseline."""
    cells = [
        (
            row.version.title,
            growth.measure.value,
            f"{growth.before:,}",
            f"{growth.now:,}",
            f"{growth.difference:+,}" if growth.difference else "0",
            str(growth.allowance),
            "" if growth.allowed else "grown too much",
        )
        for row in rows
        for growth in row.growths
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


def precision_text(found: Precision, *, width: int) -> str:
    """List the layers of both networks, the noisiest first, and how the worst one's errors lie."""
    rows = [("inputs", f"{count(found.inputs, 'input')}, {found.source.value}")]
    rows.append(("layers", f"{len(found.layers)} in both"))
    if found.unmatched:
        rows.append(("not paired", ", ".join(f"{row[1]} {row[0]}" for row in found.unmatched)))
    title = one_line(f"{found.model} beside {found.floating}")
    parts = [f"{title}\n{fields(rows, width=width)}"]
    lines = named_table(
        [_precision_row(row) for row in found.worst_first],
        [row.name for row in found.worst_first],
        width=width,
        headings=("#", "type", "SQNR", "largest", "mean", "in steps", "saturated", "output"),
        right=(0, 2, 3, 4, 5, 6),
    )
    parts.append(f"Layers, the worst first (errors absolute)\n{lines}")
    if found.layers:
        parts.append(_histogram(found.worst_first[0]))
    return "\n\n".join(parts)


def _precision_row(row: LayerPrecision) -> tuple[str, ...]:
    return (
        str(row.index),
        row.kind,
        "-" if row.sqnr_db is None else f"{row.sqnr_db:.1f} dB",
        f"{row.largest:.3g}",
        f"{row.mean:.3g}",
        f"{row.largest / row.step:.1f}" if row.step else "-",
        share(round(row.saturated * row.elements), row.elements),
    )


def _histogram(row: LayerPrecision) -> str:
    edges = [f"up to {edge:g}" for edge in BINS] + ["beyond"]
    most = max(*row.bins, 1)
    cells = [
        (edge, share(number, row.elements), "#" * round(BAR_WIDTH * number / most))
        for edge, number in zip(edges, row.bins, strict=True)
    ]
    lines = "\n".join(f"  {edge:<9} {part:>7}  {bar}".rstrip() for edge, part, bar in cells)
    return f"Errors of layer {row.index} in steps of {row.step:.3g}\n{lines}"


BAR_WIDTH = 40
