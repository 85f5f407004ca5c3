"""Compile a TFLite network with Vela's core, and find the operators that stop it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.compiler.ethos_u.vela.masking import mask, unmask
from mizzen.compiler.ethos_u.vela.outcome import Generated, breaches_of
from mizzen.compiler.ethos_u.vela.variables import hidden_operators
from mizzen.compiler.refusals import HidingSearch
from mizzen.diagnostics import Diagnostic, MizzenError, ProgressCallback
from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator, macs
from mizzen.targets.ethos_u.legal.tflite_tensors import STOPS
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import TIME_LIMIT_SECONDS, Compiled, Stopped, generate

TRIES = 64
"""How often to compile at most while looking for the operators that stop the compiler."""

TRY_LIMIT_SECONDS = 5.0
"""Time for one of these."""

SEARCH_SECONDS = 20.0
"""Time for all of them; operators that were not tried by then stay on the CPU."""


NOT_READ = frozenset(
    {
        TensorType.FLOAT8_E4M3FN,
        TensorType.FLOAT8_E5M2,
        TensorType.INT2,
        TensorType.INT4,
        TensorType.UINT4,
    }
)
"""Types of tensors that Vela's reader does not know, or stops at where they are weights."""


def compile_with_cpu_fallback(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    *,
    hidden: frozenset[int] = frozenset(),
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> Generated:
    """Compile a network whose file is `data`; raises E3xx where nothing helps.

    hidden     operators by index that must be on the CPU
    """
    network = mask(model, hidden) if _must_mask(model, hidden) else data
    outcome = generate(
        network,
        configuration,
        time_limit_seconds=time_limit_seconds,
        on_progress=on_progress,
    )
    if isinstance(outcome, Compiled):
        return Generated(_unmasked(outcome, model, hidden), hidden, None)
    limit = min(time_limit_seconds, TRY_LIMIT_SECONDS)
    found = _Search(model, configuration, hidden, limit, on_progress).find(outcome)
    if found is None:
        raise MizzenError(_hopeless(outcome, model))
    return found


def _unmasked(compiled: Compiled, model: Model, hidden: frozenset[int]) -> Compiled:
    if not _must_mask(model, hidden):
        return compiled
    return replace(compiled, network=unmask(compiled.network, model, hidden))


def _must_mask(model: Model, hidden: frozenset[int]) -> bool:
    return bool(hidden or hidden_operators(model))


def _hopeless(stopped: Stopped, model: Model) -> Diagnostic:
    kinds = sorted({row.kind for row in model.main.operators if not row.custom})
    tried = f"it does so too with every {', '.join(kinds)} on the CPU"
    diagnostic = stopped.diagnostic
    if kinds:
        diagnostic = replace(diagnostic, message=f"{diagnostic.message}; {tried}")
    for operator in model.main.operators:
        for tensor in model.main.present((*operator.inputs, *operator.outputs)):
            if tensor.type in NOT_READ:
                return replace(
                    diagnostic,
                    message=f'{diagnostic.message}; its tensor "{tensor.name}" is '
                    f"{tensor.type.name}, which Vela does not read",
                    origin=model.origin(operator),
                    help="convert the network with tensors of INT8 or INT16",
                )
    if len(model.main.operators) == 1:
        return replace(diagnostic, origin=model.origin(model.main.operators[0]))
    return diagnostic


class _Search:
    """Looks for the fewest operators without which the compiler gives a network."""

    def __init__(
        self,
        model: Model,
        configuration: EthosUConfiguration,
        hidden: frozenset[int],
        limit_seconds: float,
        on_progress: ProgressCallback | None,
    ) -> None:
        self._model = model
        self._hidden = hidden
        self._configuration = configuration
        self._limit_seconds = limit_seconds
        self._on_progress = on_progress

    def find(self, stopped: Stopped) -> Generated | None:
        """Find them; None if there is no network even without any operator for the NPU."""
        search = HidingSearch(self._compile, TRIES, SEARCH_SECONDS)
        found = search.find(self._guesses(stopped), self._kinds())
        if found is None:
            return None
        hidden, compiled = found
        return Generated(compiled, hidden | self._hidden, stopped)

    @property
    def _hideable(self) -> frozenset[int]:
        operators = self._model.main.operators
        return frozenset(row.index for row in operators if not row.custom)

    def _guesses(self, stopped: Stopped) -> Iterator[frozenset[int]]:
        """Return the operators that are known to stop the compiler, and those that it names."""
        arch = self._configuration.accelerator.arch
        main = self._model.main
        stopping, named = set[int](), set[int]()
        for operator in main.operators:
            rows = breaches_of(self._model, operator, arch)
            if any(row.source == STOPS for row in rows) or self._at_boolean_border(operator):
                stopping.add(operator.index)
            outputs = main.present(operator.outputs)
            if any(f"'{tensor.name}'" in stopped.said for tensor in outputs):
                named.add(operator.index)
        candidates = (stopping, named, stopping | named)
        hideable = self._hideable
        sets = dict.fromkeys(frozenset(hidden) & hideable for hidden in candidates if hidden)
        yield from sets

    def _at_boolean_border(self, operator: Operator) -> bool:
        """Whether an operator takes or gives a boolean input or output of the network.

        For these the compiler puts in conversions that only U85 can run.
        """
        main = self._model.main
        touched = {*operator.inputs, *operator.outputs} & {*main.inputs, *main.outputs}
        return self._configuration.accelerator.arch is not Arch.U85 and any(
            main.tensors[index].type is TensorType.BOOL for index in touched
        )

    def _kinds(self) -> list[list[int]]:
        """Return the operators of each type, those that compute most first."""
        main = self._model.main
        work: dict[str, int] = {}
        groups: dict[str, list[int]] = {}
        for operator in main.operators:
            if operator.index in self._hideable:
                work[operator.kind] = work.get(operator.kind, 0) + macs(main, operator)
                groups.setdefault(operator.kind, []).append(operator.index)
        return [groups[kind] for kind in sorted(work, key=lambda kind: -work[kind])]

    def _compile(self, hidden: frozenset[int]) -> Compiled | None:
        everything = hidden | self._hidden
        outcome = generate(
            mask(self._model, everything),
            self._configuration,
            time_limit_seconds=self._limit_seconds,
            on_progress=self._on_progress,
        )
        if isinstance(outcome, Stopped):
            return None
        return _unmasked(outcome, self._model, everything)
