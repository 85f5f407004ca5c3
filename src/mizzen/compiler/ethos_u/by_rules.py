"""A network as one NPU operator of our own rules, where Vela's code for it is wrong.

Vela has no part in it, so none of its defects either. What comes must be proved by whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.generator import is_asked
from mizzen.compiler.ethos_u.generator.whole import NotWhole, compiled_whole
from mizzen.compiler.ethos_u.outcome import Generated
from mizzen.compiler.ethos_u.variables import variable_operators
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.config import EthosUConfiguration


def by_rules(
    model: Model, configuration: EthosUConfiguration, wrong: Iterable[int]
) -> Generated | None:
    """Compile a network by our own rules; None where they do not take it whole, or must not.

    wrong  operators by index that Vela's code gets wrong
    """
    kept_out = any(row.kind in configuration.ignore_ops for row in model.main.operators)
    if kept_out or not is_asked(configuration) or variable_operators(model):
        return None
    kinds = dict.fromkeys(model.main.operators[index].kind for index in wrong)
    reason = f"Vela's code gets {', '.join(kinds) or 'an output'} wrong"
    try:
        compiled = compiled_whole(model, configuration, Verdict.CORRECTED, reason)
    except MizzenError:  # no schedule, or one that cannot be emitted
        return None
    if isinstance(compiled, NotWhole):
        return None
    network = read_network(compiled.network, model.name)
    return Generated(compiled, frozenset(), None, network)
