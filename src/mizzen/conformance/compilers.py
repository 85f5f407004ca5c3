"""The compilers that a suite can be run through: Vela's two cores, each in a worker process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.outcome import Generated, report_of
from mizzen.conformance.verdict import Verdict
from mizzen.frontends.tflite import Model
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import Cause, Stopped, core_path, generate

SCRIPT = Path(__file__).with_name("legacy_process.py")
TIME_LIMIT_SECONDS = 60.0
"""A network of one operator compiles in well under a second."""


class Compiler(Enum):
    """A compiler; the value is the command line's word for it."""

    REGOR = "vela"
    LEGACY = "vela-legacy"

    @property
    def label(self) -> str:
        """What people call it."""
        return "Vela" if self is Compiler.REGOR else "Vela's deprecated core"

    def compiles_for(self, arch: Arch) -> bool:
        """Whether it knows a family at all. Ref: Vela 5.2.0, OPTIONS.md."""
        return self is Compiler.REGOR or arch is not Arch.U85


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


def _regor(network: bytes, name: str, configuration: EthosUConfiguration) -> Built | NotBuilt:
    outcome = generate(network, configuration, time_limit_seconds=TIME_LIMIT_SECONDS)
    if isinstance(outcome, Stopped):
        refused = outcome.cause in (Cause.REFUSED, Cause.CANNOT_FALL_BACK)
        return NotBuilt(Verdict.REFUSED if refused else Verdict.CRASHED, outcome.said)
    model: Model = read_network(network, name)
    generated = Generated(outcome, frozenset(), None)
    compiled = read_network(outcome.network, name)
    report = report_of(model, compiled, configuration, generated)
    reasons = (reason.message for row in report.on_cpu for reason in row.reasons)
    return Built(outcome.network, tuple(dict.fromkeys(reasons)))


def _legacy(network: bytes, configuration: EthosUConfiguration) -> Built | NotBuilt:
    core_path()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "network.tflite")
        source.write_bytes(network)
        words = [sys.executable, "-P", str(SCRIPT), *_options(source, configuration)]
        try:
            ended = subprocess.run(
                words, capture_output=True, text=True, errors="replace", cwd=folder,
                timeout=TIME_LIMIT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return NotBuilt(Verdict.CRASHED, f"it ran for over {TIME_LIMIT_SECONDS:g} s")
        result = Path(folder, "network_vela.tflite")
        if ended.returncode == 0 and result.exists():
            return Built(result.read_bytes(), tuple(_reasons(ended.stdout)))
        return _not_built(ended)


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
    """Return what the core says of each operator that it leaves to the CPU."""
    for said in _ON_CPU.findall(printed):
        yield " ".join(said.replace(" - ", "").split())


def _not_built(ended: subprocess.CompletedProcess[str]) -> NotBuilt:
    """Tell a refusal in Vela's own words from an exception or a signal."""
    text = ended.stderr.strip() or ended.stdout.strip()
    last = text.splitlines()[-1].strip() if text else "it said nothing"
    if ended.returncode < 0:
        return NotBuilt(Verdict.CRASHED, f"signal {signal.Signals(-ended.returncode).name}: {last}")
    crashed = "Traceback (most recent call last)" in ended.stderr
    return NotBuilt(Verdict.CRASHED if crashed else Verdict.REFUSED, last)
