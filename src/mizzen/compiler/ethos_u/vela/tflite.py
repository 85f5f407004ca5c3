"""Compile a TFLite network so that what comes is proved: what differs goes to the CPU.

An operator whose results differ is hidden from the compiler, or those in front of it that only say
where its data lies (a slice that the compiler reads through), if it is right without them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.thread import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u.vela.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.vela.findings import Findings
from mizzen.compiler.ethos_u.vela.misplaced import misplaced
from mizzen.compiler.ethos_u.vela.misread import MOVERS, forgotten, left_to_cpu, misread
from mizzen.compiler.ethos_u.vela.outcome import (
    Generated,
    confused_of,
    defects_of,
    origins_of,
    report_of,
)
from mizzen.compiler.ethos_u.vela.preparing import Prepared, prepared
from mizzen.compiler.proof.difference import PROOF, RULE
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.diagnostics import MizzenError, ProgressCallback, Reason
from mizzen.frontends.tflite import Model
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

if TYPE_CHECKING:
    from mizzen.compiler.ethos_u.vela.proof import NetworkProof

MOST_ROUNDS = 24
"""How often to compile without what was found to differ before everything goes to the CPU."""

MOST_SECONDS = 60.0
"""How long to look for the fewest operators; what is found to differ then goes to the CPU at once,
and everything does if that does not help."""

MOST_SUSPECTS = 8
"""Operators to try one by one where nothing says whose results an output's difference is."""

TOO_MANY = Reason(
    RULE,
    f"the compiler's code gave wrong numbers {MOST_ROUNDS} times over",
    help="nothing needs doing if the CPU has time for it",
    source=PROOF,
)


def compile_network(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    proof: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a network that was read from the file `data`, and prove what comes.

    Raises E3xx if the compiler fails.
    """
    given = prepared(model, data)
    generated = compile_proved(given.model, given.data, configuration, proof, on_progress)
    return _artifact(given, configuration, generated)


def _artifact(
    given: Prepared, configuration: EthosUConfiguration, generated: Generated
) -> Artifact:
    model = given.model
    origins = origins_of(model, generated.compiled)
    name = f"{Path(model.name).stem}_vela.tflite"
    file, network, proved = generated.compiled.network, generated.network, generated.contents
    if given.is_changed or network is None:
        file, proved = given.restored(file), None
        network = read_network(file, model.name)
    report = report_of(model, network, configuration, generated, origins)
    return Artifact(file, name, proved or contents_of(network, origins), report)


def compile_proved(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Generated:
    """Compile a network whose file is `data`, and prove it. Raises E3xx if the compiler fails."""
    with ThreadPoolExecutor(1) as beside:
        rounds = _Rounds(model, data, configuration, options, on_progress, beside)
        return _proved(rounds, model, configuration, options)


def _proved(
    rounds: _Rounds, model: Model, configuration: EthosUConfiguration, options: ProofOptions
) -> Generated:
    known = dict(_known_defects(model, configuration))
    if options.allow_inexact:
        generated = rounds.compile(frozenset())
        on_npu = {row.operator for row in generated.compiled.work if not row.on_cpu}
        said = {index: reason for index, reason in known.items() if index in on_npu}
        return rounds.checked(replace(generated, wrong=said))
    rounds.reasons.update(known)
    return rounds.proved(frozenset(known))


def _known_defects(
    model: Model, configuration: EthosUConfiguration
) -> Iterator[tuple[int, Reason]]:
    """Return the operators that a known defect of the compiler makes wrong, and why."""
    arch = configuration.accelerator.arch
    kept = configuration.ignore_ops
    everything = [row.index for row in model.main.operators if not (row.custom or row.kind in kept)]
    for index in everything:
        for reason in defects_of(model, model.main.operators[index], arch):
            yield index, reason
    for operator, reason in confused_of(model, everything, arch):
        yield operator.index, reason
    for index, reason in misplaced(model, arch):
        if index in everything:
            yield index, reason


class _Rounds:
    """Compiles and proves until nothing differs.

    beside  computes the reference while the compiler is at work, in a process of its own
    """

    def __init__(
        self,
        model: Model,
        data: bytes,
        configuration: EthosUConfiguration,
        options: ProofOptions,
        on_progress: ProgressCallback | None,
        beside: Executor,
    ) -> None:
        self.model = model
        self.data = data
        self.configuration = configuration
        self.options = options
        self.on_progress = on_progress
        self.reasons: dict[int, Reason] = {}
        self._start = time.monotonic()
        self._beside = beside
        self._proof: Future[NetworkProof | MizzenError] | None = None
        self._contents: Contents | None = None
        if options.effort is not Effort.OFF and _has_integers(model):
            self._proof = beside.submit(_begun, model, options)

    def compile(self, hidden: frozenset[int]) -> Generated:
        """Compile without some operators, and those that make others read what they must not."""
        while True:
            generated = compile_with_cpu_fallback(
                self.model,
                self.data,
                self.configuration,
                hidden=hidden,
                on_progress=self.on_progress,
            )
            try:
                network = read_network(generated.compiled.network, self.model.name)
            except MizzenError as error:
                movers = dict(forgotten(self.model, error, generated.hidden))
                if not movers:
                    raise
            else:
                on_cpu = left_to_cpu(generated.compiled)
                movers = misread(self.model, network, on_cpu, generated.hidden)
                if not movers:
                    return replace(generated, network=network)
            self.reasons.update(movers)
            hidden = generated.hidden | set(movers)

    def checked(self, generated: Generated) -> Generated:
        """Prove what was compiled, and warn of what differs."""
        generated = replace(generated, reasons=self.reasons)
        if self.options.effort is Effort.OFF:
            return generated
        findings = self._check(generated)
        found = self._wrong(findings)
        operators = self.model.main.operators
        names = tuple(f"{operators[index].kind} {index}" for index in sorted(found))
        if findings.suspects and not names:
            names = ("an output",)
        proof = replace(findings.proof, differing=names)
        return replace(generated, wrong={**generated.wrong, **found}, proof=proof)

    def proved(self, hidden: frozenset[int]) -> Generated:
        """Compile without some operators, then without what differs until nothing does."""
        generated = self.compile(hidden)
        if self.options.effort is Effort.OFF:
            return replace(generated, reasons=self.reasons)
        findings = self._check(generated)
        return self._without_differing(generated, findings)

    def _without_differing(self, generated: Generated, findings: Findings) -> Generated:
        for _ in range(MOST_ROUNDS):
            if findings.holds:
                return replace(
                    generated,
                    reasons=self.reasons,
                    proof=findings.proof,
                    contents=self._contents,
                )
            step = self._without_all if self._late else self._without
            generated, findings = step(generated, findings)
        generated = self._everything_on_cpu(findings)
        return replace(generated, reasons=self.reasons)

    def _begun(self) -> NetworkProof | MizzenError:
        if self._proof is None:
            self._proof = self._beside.submit(_begun, self.model, self.options)
        return self._proof.result()

    def _check(self, generated: Generated) -> Findings:
        network = generated.network
        assert network is not None
        self._contents = contents_of(network, origins_of(self.model, generated.compiled))
        if not any(isinstance(step, NpuStep) for step in self._contents.steps):
            return Findings(NOT_PROVED)
        proof = self._begun()
        if isinstance(proof, MizzenError):
            said = f"all that the NPU gives because {proof.diagnostic.message}"
            return Findings(Proof(0, self.options.seed, unproved=(said,)))
        return proof.check(generated.compiled, network, self._contents)

    def _without(self, generated: Generated, findings: Findings) -> tuple[Generated, Findings]:
        """Compile without what is found to differ first, or what it takes from."""
        wrong = self._wrong(findings)
        if wrong:
            index, reason = next(iter(wrong.items()))
            choices = [*self._movers(index), frozenset({index})]
            return self._chosen(generated, choices, reason, index)
        sources, found = findings.suspects[0]
        free = [row for row in sources if row not in generated.hidden]
        choices = [frozenset({row}) for row in free[:MOST_SUSPECTS]]
        kind = self.model.main.operators[free[0]].kind if free else "network"
        return self._chosen(generated, [*choices, frozenset(free)], found.reason(kind, PROOF), None)

    @property
    def _late(self) -> bool:
        return time.monotonic() - self._start > MOST_SECONDS

    def _without_all(self, generated: Generated, findings: Findings) -> tuple[Generated, Findings]:
        """Compile without all that differs, and all that outputs which differ depend on."""
        reasons = self._wrong(findings)
        for sources, found in findings.suspects:
            for index in sources:
                kind = self.model.main.operators[index].kind
                reasons.setdefault(index, found.reason(kind, PROOF))
        self.reasons.update(reasons)
        attempt = self.compile(generated.hidden | frozenset(reasons))
        return attempt, self._check(attempt)

    def _chosen(
        self, generated: Generated, choices: list[frozenset[int]], reason: Reason, wrong: int | None
    ) -> tuple[Generated, Findings]:
        """Hide the first choice without which what differed is right; the last does it always."""
        for choice in choices:
            if self._late and choice is not choices[-1]:
                continue
            attempt = self.compile(generated.hidden | choice)
            attempt = replace(attempt, stopped=attempt.stopped or generated.stopped)
            findings = self._check(attempt)
            again = wrong in findings.wrong or wrong in findings.faults
            if choice is choices[-1] or not (again if wrong is not None else findings.suspects):
                self.reasons.update(dict.fromkeys(choice, reason))
                return attempt, findings
        raise AssertionError("the last choice is taken")

    def _movers(self, index: int) -> list[frozenset[int]]:
        """Return the operators in front of one that only say where its data lies, if any."""
        main = self.model.main
        makers = {tensor: row for row in main.operators for tensor in row.outputs}
        found: dict[int, None] = {}
        places = list(main.operators[index].inputs)
        while places:
            row = makers.get(places.pop())
            if row is not None and row.kind in MOVERS and row.index not in found:
                found[row.index] = None
                places += row.inputs
        return [frozenset(found)] if found else []

    def _wrong(self, findings: Findings) -> dict[int, Reason]:
        """Return the operators that differ or fault, and why."""
        kinds = self.model.main.operators
        found = {
            index: row.reason(kinds[index].kind, PROOF) for index, row in findings.wrong.items()
        }
        for index, error in findings.faults.items():
            found[index] = Reason(
                RULE,
                f"the compiler's code for this {kinds[index].kind} cannot be executed: "
                f"{error.diagnostic.message}",
                help="nothing needs doing if the CPU has time for it",
                source=PROOF,
            )
        return found

    def _everything_on_cpu(self, findings: Findings) -> Generated:
        rest = frozenset(row.index for row in self.model.main.operators if not row.custom)
        reason = next(iter(self._wrong(findings).values()), TOO_MANY)
        for index in rest:
            self.reasons.setdefault(index, reason)
        return self.compile(rest)


def _has_integers(model: Model) -> bool:
    """Whether some of a network may be for the NPU, as far as types say."""
    main = model.main
    results = (tensor for row in main.operators for tensor in main.present(row.outputs))
    return any(tensor.quantization is not None for tensor in results)


def _begun(model: Model, options: ProofOptions) -> NetworkProof | MizzenError:
    """Return the proof of a network, its reference computed; else why it has none.

    What it needs is imported here, while the compiler is at work too.
    """
    from mizzen.frontends.tflite.lower import lower

    try:
        lowered = lower(model)
    except MizzenError as error:  # tensors that are no arrays of numbers
        return error
    from mizzen.compiler.ethos_u.bounds import bounds_of
    from mizzen.compiler.ethos_u.vela.proof import NetworkProof

    proof = NetworkProof(model, lowered, options, bounds_of(model))
    _ = proof.first
    return proof
