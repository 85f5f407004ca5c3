"""The configuration in force for an Ethos-N78, from what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mizzen.compiler.options import CompileOptions, ConfigurationLine
from mizzen.diagnostics import Diagnostic, fail
from mizzen.targets.ethos_n.config import VariantConfiguration, find_variant, parse_options

OF_OTHERS = ("config", "system_config", "memory_mode")
"""What can be asked for of NPUs whose system `vela.ini` describes."""


@dataclass(frozen=True, slots=True)
class EthosNConfiguration:
    """What a network is compiled for, and what of it was asked for.

    target      the compiler's configuration
    inline      whether regions in which nothing computes much stay on the CPU
    ignore_ops  types of operators that stay on the CPU because the user said so
    options     the target's own, as they were given
    """

    target: VariantConfiguration
    inline: bool = True
    ignore_ops: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Nothing is in doubt."""
        return ()

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as JSON-ready data."""
        return {
            "accelerator": self.target.variant.name,
            "sram_bytes": self.target.capabilities.sram_bytes,
            "options": dict(self.options),
        }

    def lines(self) -> Iterator[ConfigurationLine]:
        """Say what is in force."""
        yield ConfigurationLine("accelerator", self.target.variant.name)
        yield ConfigurationLine(
            "SRAM", self.target.capabilities.sram_bytes, not self.target.sram_bytes
        )
        if self.options:
            yield ConfigurationLine(
                "options", ", ".join(f"{name}={value}" for name, value in self.options)
            )


def resolve(options: CompileOptions) -> EthosNConfiguration:
    """Put the configuration together.

    E226 for what only other NPUs have, E911 for an SRAM that the hardware cannot have, and the
    errors of `parse_options` for the target's own options.
    """
    for name in OF_OTHERS:
        value = getattr(options, name)
        if value is not None:
            raise fail(
                "E226",
                f"--{name.replace('_', '-')} must be left out for Ethos-N, whose system needs no "
                f"description, and is {value!r}",
                help="--arena-cache-size sets another SRAM, --target-option the compiler's options",
            )
    target_options = options.target_options or {}
    variant = find_variant(options.accelerator_name.lower())
    chosen = parse_options(target_options, variant)
    target = chosen.configuration
    if options.arena_cache_size is not None:
        target = replace(target, sram_bytes=options.arena_cache_size)
    _ = target.capabilities
    given = tuple(sorted(target_options.items()))
    return EthosNConfiguration(target, chosen.inline, tuple(options.ignore_ops), given)
