"""Compile a TFLite network so that what comes is proved: what differs goes to the CPU.

An operator whose results differ is hidden from the compiler, or those in front of it that only say
where its data lies (a slice that the compiler reads through), if it is right without them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.thread import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.execution import Contents
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u.by_rules import by_rules
from mizzen.compiler.ethos_u.cpu_fallback import compile_with_cpu_fallback
from mizzen.compiler.ethos_u.findings import Findings
from mizzen.compiler.ethos_u.generator import has_corrected_code, has_own_code, is_asked
from mizzen.compiler.ethos_u.generator.equality import numbers
from mizzen.compiler.ethos_u.misplaced import misplaced
from mizzen.compiler.ethos_u.misread import MOVERS, forgotten, left_to_cpu, misread
from mizzen.compiler.ethos_u.outcome import (
    Generated,
    confused_of,
    defects_of,
    origins_of,
    report_of,
)
from mizzen.compiler.ethos_u.preparing import Prepared, prepared
from mizzen.compiler.ethos_u.stateful import compiled_with_state
from mizzen.compiler.proof.difference import PROOF, RULE
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.diagnostics import MizzenError, ProgressCallback, Reason
from mizzen.frontends.tflite import Model
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator

if TYPE_CHECKING:
    from mizzen.compiler.ethos_u.proof import NetworkProof

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

    Raises E3xx if the compiler fails, E267 for rewrites that the network does not allow, E268 if
    what is rewritten does not give what the network gives, E269 if that cannot be executed here.
    """
    given = prepared(model, data)
    if configuration.rewrites:
        return _compile_rewritten(given, configuration, proof, on_progress)
    generated = compiled_with_state(given.model, given.data, configuration, proof)
    if generated is None:
        generated = compile_proved(given.model, given.data, configuration, proof, on_progress)
    return _artifact(given, configuration, generated)


def _compile_rewritten(
    given: Prepared,
    configuration: EthosUConfiguration,
    proof: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a network as it is rewritten, and show that it computes what the network does."""
    from mizzen.compiler.ethos_u.rewriting import in_terms_of, require_same
    from mizzen.compiler.rewrites import rewritten

    names = configuration.rewrites
    made = rewritten(given.model, given.data, names)
    generated = compile_proved(made.model, made.data, configuration, proof, on_progress)
    generated = in_terms_of(generated, made.sources)
    artifact = _artifact(given, configuration, replace(generated, contents=None))
    if proof.effort is not Effort.OFF:
        require_same(given.model, artifact.contents, names, proof)
    return artifact


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
    ours = rounds.ours(known) if known else None
    return ours or rounds.told(rounds.proved(frozenset(known)))


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
        self._may_differ = options.effort is not Effort.OFF and not options.allow_inexact
        self._may_be_ours = self._may_differ
        self._not_ours = ""
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
                is_proved=self._may_differ,
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

    def ours(self, wrong: Iterable[int]) -> Generated | None:
        """Return the network by our own rules, once, if its numbers are the reference's.

        wrong  operators that Vela's code gets wrong
        """
        if not self._may_be_ours or not is_asked(self.configuration):
            return None
        self._may_be_ours = False
        generated = by_rules(self.model, self.configuration, wrong)
        if isinstance(generated, str):
            self._not_ours = f"Mizzen's own code cannot take its place: {generated}"
            return None
        before = self._contents
        proof = self._decided(generated) if self._check(generated).decides else None
        contents, self._contents = self._contents, before
        if proof is None:
            self._not_ours = "Mizzen's own code is not proved to be right either"
        return proof and replace(generated, proof=proof, contents=contents)

    def told(self, generated: Generated) -> Generated:
        """Say with what Vela gets wrong why code of our own does not take its place."""
        if not self._not_ours:
            return generated
        rows = generated.reasons.items()
        reasons = {index: replace(row, help=_and(row.help, self._not_ours)) for index, row in rows}
        return replace(generated, reasons=reasons)

    def proved(self, hidden: frozenset[int]) -> Generated:
        """Compile without some operators, then without what differs until nothing does."""
        generated = self.compile(hidden)
        if self.options.effort is Effort.OFF:
            return replace(generated, reasons=self.reasons)
        findings = self._check(generated)
        if has_corrected_code(generated.compiled):
            proof = self._decided(generated) if findings.decides else None
            if proof is not None:
                reasons, contents = self.reasons, self._contents
                return replace(generated, reasons=reasons, proof=proof, contents=contents)
            self._may_differ = self._may_be_ours = False
            generated = self.compile(hidden)
            findings = self._check(generated)
        if self.reasons or not findings.holds:
            ours = self.ours(self._wrong(findings) or self.reasons)
            if ours is not None:
                return ours
        if not findings.holds:
            generated, findings = self._theirs(generated, findings, hidden)
        return self._without_differing(generated, findings)

    def _theirs(
        self, generated: Generated, findings: Findings, hidden: frozenset[int]
    ) -> tuple[Generated, Findings]:
        """Compile with Vela's code alone where ours differs, and take that if it holds.

        What differs inside of ours is not always told from what is read of it, and Vela's is: one
        with documented roundings leaves the NPU, or what reads it.
        """
        asked = self.configuration
        if asked.generator is not Generator.BEST or not has_own_code(generated.compiled):
            return generated, findings
        contents = self._contents
        self.configuration = replace(asked, generator=Generator.VELA)
        theirs = self.compile(hidden)
        found = self._check(theirs)
        if found.holds:
            return theirs, found
        self.configuration, self._contents = asked, contents
        return generated, findings

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

    def _decided(self, generated: Generated) -> Proof | None:
        """Return the proof of code whose numbers need not be Vela's; None where it is not right.

        It is also of the inputs on which code of ours is held against Vela's.
        """
        proof = self._begun()
        if isinstance(proof, MizzenError):
            return None
        main, network = self.model.main, generated.network
        rows = [(row.shape, row.dtype) for row in main.present(main.inputs)]
        others = [
            numbers(shape, dtype, at) for at, (shape, dtype) in enumerate(rows) if dtype is not None
        ]
        assert network is not None
        assert self._contents is not None
        found = proof.deciding(others).check(generated.compiled, network, self._contents)
        return found.proof if found.decides else None

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


def _and(help: str, more: str) -> str:
    return f"{help}; {more}" if help else more


def _has_integers(model: Model) -> bool:
    """Whether some of a network may be for the NPU, as far as types say."""
    main = model.main
    results = (tensor for row in main.operators for tensor in main.present(row.outputs))
    return any(tensor.quantization is not None for tensor in results)


def _begun(model: Model, options: ProofOptions) -> NetworkProof | MizzenError:
    """Return the proof of a network, its reference computed; else why it has none.

    What it needs is imported here, and worker processes start, while the compiler is at work too.
    """
    from mizzen.compiler.tflite_reference import begin
    from mizzen.frontends.tflite.lower import lower

    try:
        lowered = lower(model)
    except MizzenError as error:  # tensors that are no arrays of numbers
        return error
    begin(lowered)
    from mizzen.targets.ethos_u.judge.codec import decoding

    decoding.begin()
    from mizzen.compiler.ethos_u.proof import NetworkProof

    proof = NetworkProof(model, lowered, options)
    _ = proof.first
    return proof
