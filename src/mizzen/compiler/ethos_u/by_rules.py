"""A network as one NPU operator of our own rules, where Vela's code for it is wrong.

Vela has no part in it, so none of its defects either. What comes must be proved by whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.generator.whole import NotWhole, compiled_whole, whole_model
from mizzen.compiler.ethos_u.outcome import Generated
from mizzen.compiler.ethos_u.variables import keeps_variables
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration


def by_rules(
    model: Model, configuration: EthosUConfiguration, wrong: Iterable[int]
) -> Generated | str:
    """Compile a network by our own rules; say why not where they do not take it whole.

    wrong  operators by index that Vela's code gets wrong
    """
    if any(row.kind in configuration.ignore_ops for row in model.main.operators):
        return "some of it is to be on the CPU"
    if keeps_variables(model):
        return "it keeps variables"
    kinds = dict.fromkeys(model.main.operators[index].kind for index in wrong)
    reason = f"Vela's code gets {', '.join(kinds) or 'an output'} wrong"
    try:
        compiled = compiled_whole(whole_model(model), configuration, Verdict.CORRECTED, reason)
    except MizzenError as error:  # no schedule, or one that cannot be emitted
        return error.diagnostic.message
    if isinstance(compiled, NotWhole):
        return _said(model, compiled)
    network = read_network(compiled.network, model.name)
    return Generated(compiled, frozenset(), None, network)


def _said(model: Model, found: NotWhole) -> str:
    """Say why a network is not taken whole, by its first operator that is not."""
    if not found.reasons:
        return "no rule takes all of it"
    index, reason = found.reasons[0]
    return reason if index is None else f"{model.main.operators[index].kind} {index}: {reason}"
