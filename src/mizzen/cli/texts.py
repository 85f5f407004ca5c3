"""What `str()` gives of results: what their verbs print of them."""

from __future__ import annotations

from mizzen.analysis.checking.networks import CheckReport
from mizzen.cli.check import network_text
from mizzen.cli.compile import report_text
from mizzen.cli.console import Console
from mizzen.cli.fit import needs_of_network
from mizzen.cli.placement import cost_of
from mizzen.cli.tune import front_text, head_text
from mizzen.report import CompileReport
from mizzen.report.tuning import TuningReport


def text_of_result(thing: object) -> str | None:
    """Return what a verb prints of a result, as wide as the terminal; None for what has no verb."""
    console = Console()
    match thing:
        case CheckReport():
            return _checked(thing, console)
        case CompileReport():
            return report_text(thing, console)
        case TuningReport():
            return f"{head_text(thing, console)}\n\n{front_text(thing, console)}"
        case _:
            return None


def _checked(checked: CheckReport, console: Console) -> str:
    """Return the verb's text, then what does not hold and the warnings."""
    from mizzen.analysis.layers import layers

    cost = cost_of(checked.artifact)
    needs = needs_of_network(checked.artifact, None)
    known = () if cost is None else tuple(layers(checked.compilation, cost, needs.memory))
    said = (*checked.failures, *checked.compilation.diagnostics)
    return "\n\n".join(
        [
            network_text(checked, cost, (known, ()), (), needs, console),
            *(diagnostic.render() for diagnostic in said),
        ]
    )
