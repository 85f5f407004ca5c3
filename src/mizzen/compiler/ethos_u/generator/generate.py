"""Generate code with Vela, and Mizzen's own in its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from mizzen.diagnostics import ProgressCallback
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator, Optimise
from mizzen.targets.ethos_u.vela import generate as vela
from mizzen.targets.ethos_u.vela.generate import (
    TIME_LIMIT_SECONDS,
    Compiled,
    NetworkForm,
    Stopped,
)

WRITTEN_FOR = frozenset({Arch.U55, Arch.U65})
"""What there is code of our own for."""


def generate(
    network: bytes,
    configuration: EthosUConfiguration,
    form: NetworkForm = NetworkForm.TFLITE,
    *,
    is_proved: bool = False,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> Compiled | Stopped:
    """Compile a network as `mizzen.targets.ethos_u.vela.generate.generate` does, or better.

    Which operators are on the NPU is as Vela has it; code of our own is the fastest that was found,
    or if the configuration optimises for size, the one in least memory. E300 if Vela is not
    installed.

    is_proved  whether whoever asks executes what comes beside the reference, and asks again without
               where that has other numbers
    """
    compiled = vela.generate(
        network,
        configuration,
        form,
        time_limit_seconds=time_limit_seconds,
        on_progress=on_progress,
    )
    if isinstance(compiled, Stopped) or not is_asked(configuration):
        return compiled
    asked = _Asked(network, form, is_proved, configuration, compiled.network, compiled)
    return remembered(asked) if len(network) <= REMEMBERED_BYTES else _better(asked)


REMEMBERED = 32
REMEMBERED_BYTES = 1 << 19
"""Networks that are searched for once, where they are asked for again: by the search for options
that change little of what Vela makes, for what fits a budget, for another form of the artifact."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a search begins with; what Vela made is told by its network."""

    network: bytes
    form: NetworkForm
    is_proved: bool
    configuration: EthosUConfiguration
    made: bytes
    compiled: Compiled = field(compare=False)


def _better(asked: _Asked) -> Compiled:
    from mizzen.compiler.ethos_u.generator.improve import improved, smallest
    from mizzen.compiler.ethos_u.generator.sequences import Source

    search = smallest if asked.configuration.optimise is Optimise.SIZE else improved
    source = Source(asked.network, asked.form, is_proved=asked.is_proved)
    return search(asked.compiled, source, asked.configuration)


remembered = lru_cache(REMEMBERED)(_better)
"""As `_better`, and again without a search: the same comes of the same."""


def is_asked(configuration: EthosUConfiguration) -> bool:
    """Whether code of our own is asked for, and there is some for the accelerator."""
    is_vela = configuration.generator is Generator.VELA
    return not is_vela and configuration.accelerator.arch in WRITTEN_FOR
