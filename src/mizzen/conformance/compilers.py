"""The compilers that a suite can be run through: Vela's two cores, and Mizzen.

Vela's cores run each in a worker process. Mizzen's generator alone writes what it was given,
whether or not Vela's numbers are others; all of Mizzen is what `mizzen compile` makes.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.makers import compile_tflite
from mizzen.compiler.ethos_u.vela.report import report_of
from mizzen.compiler.proof.options import DEFAULT, OFF
from mizzen.conformance.verdict import Verdict
from mizzen.files import temporary_folder
from mizzen.frontends.tflite import Model
from mizzen.report import CompileReport
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    Generator,
)
from mizzen.targets.ethos_u.vela.generate import Cause, Compiled, Stopped, core_path, generate
from mizzen.workers.child import Child

SCRIPT = Path(__file__).with_name("legacy_process.py")
TIME_LIMIT_SECONDS = 60.0
"""A network of one operator compiles in well under a second."""


class Compiler(Enum):
    """A compiler; the value is the command line's word for it."""

    REGOR = "vela"
    LEGACY = "vela-legacy"
    OWN = "own"
    MIZZEN = "mizzen"

    @property
    def label(self) -> str:
        """What people call it."""
        return LABELS[self]

    def compiles_for(self, arch: Arch) -> bool:
        """Whether it knows a family at all. Ref: Vela 5.2.0, OPTIONS.md."""
        return self is not Compiler.LEGACY or arch is not Arch.U85


LABELS = {
    Compiler.REGOR: "Vela",
    Compiler.LEGACY: "Vela's deprecated core",
    Compiler.OWN: "Mizzen's own generator",
    Compiler.MIZZEN: "mizzen compile",
}


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled network's file, and why operators were left to the CPU."""

    network: bytes
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotBuilt:
    """The compiler gave no network: how, and in which words."""

    verdict: Verdict
    said: str


def build(
    network: bytes, name: str, compiler: Compiler, configuration: EthosUConfiguration
) -> Built | NotBuilt:
    """Compile a network of a file's `name`. E300 if the compiler is not installed."""
    match compiler:
        case Compiler.REGOR:
            return _regor(network, name, configuration)
        case Compiler.LEGACY:
            return _legacy(network, configuration)
        case Compiler.OWN:
            return _own(network, name, configuration)
        case Compiler.MIZZEN:
            return _mizzen(network, name, configuration)


def _regor(network: bytes, name: str, configuration: EthosUConfiguration) -> Built | NotBuilt:
    outcome = generate(network, configuration, time_limit_seconds=TIME_LIMIT_SECONDS)
    return _built(outcome, network, name, configuration)


def _own(network: bytes, name: str, configuration: EthosUConfiguration) -> Built | NotBuilt:
    """Compile by our own rules without a proof: the suite itself is what decides."""
    own = replace(configuration, generator=Generator.OWN)
    return _report_of(compile_tflite(read_network(network, name), network, own, OFF, None))


def _mizzen(network: bytes, name: str, configuration: EthosUConfiguration) -> Built | NotBuilt:
    """Compile as `mizzen compile` does, with its proof."""
    model = read_network(network, name)
    return _report_of(compile_tflite(model, network, configuration, DEFAULT, None))


def _report_of(artifact: Artifact) -> Built:
    assert artifact.report is not None
    return Built(artifact.data, _reasons_of(artifact.report))


def _built(
    outcome: Compiled | Stopped, network: bytes, name: str, configuration: EthosUConfiguration
) -> Built | NotBuilt:
    if isinstance(outcome, Stopped):
        refused = outcome.cause in (Cause.REFUSED, Cause.CANNOT_FALL_BACK)
        return NotBuilt(Verdict.REFUSED if refused else Verdict.CRASHED, outcome.said)
    model: Model = read_network(network, name)
    compiled = read_network(outcome.network, name)
    report = report_of(model, compiled, configuration, outcome)
    return Built(outcome.network, _reasons_of(report))


def _reasons_of(report: CompileReport) -> tuple[str, ...]:
    """Return why operators were left to the CPU, each reason once."""
    reasons = (reason.message for placement in report.on_cpu for reason in placement.reasons)
    return tuple(dict.fromkeys(reasons))


def _legacy(network: bytes, configuration: EthosUConfiguration) -> Built | NotBuilt:
    core_path()
    with temporary_folder() as folder:
        source = Path(folder, "network.tflite")
        source.write_bytes(network)
        words = [sys.executable, "-P", str(SCRIPT), *_options(source, configuration)]
        with Child(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder) as process:
            try:
                out, err = process.communicate(timeout=TIME_LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                return NotBuilt(Verdict.CRASHED, f"it ran for over {TIME_LIMIT_SECONDS:g} s")
            finally:
                process.kill()
        said, wrong = (data.decode(errors="replace") for data in (out, err))
        result = Path(folder, "network_vela.tflite")
        if process.returncode == 0 and result.exists():
            return Built(result.read_bytes(), tuple(_reasons(said)))
        return _not_built(process.returncode, said, wrong)


def _options(source: Path, configuration: EthosUConfiguration) -> Iterator[str]:
    """Return the configuration as Vela's command line has it."""
    yield str(source)
    yield f"--accelerator-config={configuration.accelerator.name}"
    yield "--debug-force-legacy-core"
    yield f"--output-dir={source.parent}"
    for file in configuration.files:
        yield f"--config={file}"
    yield f"--system-config={configuration.system.name}"
    yield f"--memory-mode={configuration.mode.name}"
    yield f"--optimise={configuration.optimise.value}"
    yield f"--arena-cache-size={configuration.arena_cache_size_bytes}"


_ON_CPU = re.compile(r"^Warning: .* is not supported on the NPU.*\n((?: .*\n)*)", re.MULTILINE)


def _reasons(printed: str) -> Iterator[str]:
    """Return the core's reason for each operator that it leaves to the CPU."""
    for said in _ON_CPU.findall(printed):
        yield " ".join(said.replace(" - ", "").split())


def _not_built(status: int, said: str, wrong: str) -> NotBuilt:
    """Tell a refusal in Vela's own words from an exception or a signal."""
    text = wrong.strip() or said.strip()
    last = text.splitlines()[-1].strip() if text else "it said nothing"
    if status < 0:
        return NotBuilt(Verdict.CRASHED, f"signal {signal.Signals(-status).name}: {last}")
    crashed = "Traceback (most recent call last)" in wrong
    return NotBuilt(Verdict.CRASHED if crashed else Verdict.REFUSED, last)
