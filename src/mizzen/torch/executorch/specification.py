"""A compile specification as ExecuTorch hands it from partitioner to backend, and into the file.

The rows are those of Arm's backend, so that its tools read them. The specification itself stays in
the process, under the digest that a row has; where it is not, the rows say enough unless the system
is described by a file of the user's own, whose path is in no artifact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED
from mizzen.torch.spec import OUTPUT_FORMAT, EthosUCompileSpec

TOSA, FLAGS, FORMAT, TARGET, OPTIONS, OWN = (
    "tosa_spec",
    "compile_flags",
    "output_format",
    "target",
    "mizzen_options",
    "mizzen_spec",
)
PROFILES = {
    Arch.U55: "TOSA-1.0+INT+int16+int4+u55",
    Arch.U65: "TOSA-1.0+INT+int16+int4+u55",
    Arch.U85: "TOSA-1.0+INT+int16+int4+cf",
}
"""TOSA profiles and extensions, named as Arm's backend does (ExecuTorch 1.5, EthosUCompileSpec)."""

_SPECS: dict[str, EthosUCompileSpec] = {}


def rows_of(spec: EthosUCompileSpec) -> list[Any]:
    """Return the rows of a specification, ExecuTorch's `CompileSpec`."""
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    digest = sha256(repr(spec.configuration).encode()).hexdigest()
    _SPECS[digest] = spec
    configuration = spec.configuration
    flags = [
        f"--accelerator-config={configuration.accelerator.name}",
        *([f"--config={BUNDLED}"] if configuration.files == (BUNDLED,) else []),
        "--output-format=raw",
        f"--system-config={configuration.system.name}",
        f"--memory-mode={configuration.mode.name}",
        f"--optimise={configuration.optimise.value}",
        f"--arena-cache-size={configuration.arena_cache_size_bytes}",
    ]
    values = {
        TOSA: PROFILES[configuration.accelerator.arch],
        FLAGS: " ".join(flags),
        FORMAT: OUTPUT_FORMAT,
        TARGET: configuration.accelerator.name,
        **({OPTIONS: _said(spec.target_options)} if spec.target_options else {}),
        OWN: digest,
    }
    return [CompileSpec(key, value.encode()) for key, value in values.items()]


def _said(options: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


def is_own(specs: Sequence[Any]) -> bool:
    """Whether rows are of a specification of Mizzen's."""
    return any(spec.key == OWN for spec in specs)


def spec_from(specs: Sequence[Any]) -> EthosUCompileSpec:
    """Return the specification that rows are of. E887 where its file is not known here."""
    values = {spec.key: bytes(spec.value).decode() for spec in specs}
    known = _SPECS.get(values[OWN])
    if known is not None:
        return known
    flags = dict(word.removeprefix("--").split("=", 1) for word in values[FLAGS].split())
    if "config" not in flags:
        raise fail(
            "E887",
            "a specification whose system a file describes must be used in the process that made "
            "it, since the file's path is in no artifact",
            help="make the EthosUCompileSpec with its config_ini again, and lower with that",
        )
    return EthosUCompileSpec(
        values[TARGET],
        flags["system-config"],
        flags["memory-mode"],
        [f"--{name}={flags[name]}" for name in ("optimise", "arena-cache-size")],
        target_options=dict(word.split("=", 1) for word in values.get(OPTIONS, "").split()),
    )
