"""The one table of NPU families, which packages of others extend.

A family has two ends: what makes programs for it and what executes them. What needs one loads
that end alone, so that running an artifact imports no compiler. Another package adds a family by
an entry point of the group `mizzen.targets` whose object is a `Family`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from mizzen.diagnostics import did_you_mean, fail

GROUP = "mizzen.targets"


@dataclass(frozen=True, slots=True)
class Family:
    """An NPU family.

    code          of the custom operator that stands for a compiled part in a TFLite network
    accelerators  where the names that `--accelerator-config` takes are, as ``module:attribute``
    runtime       where its `mizzen.artifact.program.NpuFamily` is, likewise
    compiler      where its `mizzen.compiler.backend.Backend` is
    memory_inputs inputs of that operator, its first, that are memory and not tensors
    activation_bits widths of the integers that it wants activations quantised to
    """

    name: str
    code: str
    accelerators: str
    runtime: str
    compiler: str
    memory_inputs: int = 0
    activation_bits: tuple[int, ...] = (8,)

    @property
    def accelerator_names(self) -> tuple[str, ...]:
        """The names of its accelerators."""
        return tuple(loaded(self.accelerators))


ETHOS_U = Family(
    "Ethos-U",
    "ethos-u",
    "mizzen.targets.ethos_u.machine.config:ACCELERATORS",
    "mizzen.artifact.ethos_u:ETHOS_U",
    "mizzen.compiler.ethos_u.backend:ETHOS_U",
    memory_inputs=4,
    activation_bits=(8, 16),
)
ETHOS_N = Family(
    "Ethos-N",
    "ethos-n",
    "mizzen.targets.ethos_n.config:VARIANTS",
    "mizzen.artifact.ethos_n:ETHOS_N",
    "mizzen.compiler.ethos_n.backend:ETHOS_N",
)


def families() -> Iterator[Family]:
    """Return every family, those of Mizzen first."""
    yield ETHOS_U
    yield ETHOS_N
    yield from _installed()


def family_for(accelerator: str) -> Family:
    """Return the family of an accelerator. E210 if there is no accelerator of that name."""
    for family in families():
        if accelerator.lower() in family.accelerator_names:
            return family
    known = [name for family in families() for name in family.accelerator_names]
    raise fail(
        "E210",
        f"the accelerator must be {', '.join(known[:-1])} or {known[-1]}, not {accelerator!r}",
        help=did_you_mean(accelerator, known),
    )


@cache
def _installed() -> tuple[Family, ...]:
    """Return the families of other packages; found once, which takes some milliseconds."""
    from importlib.metadata import entry_points  # takes longer than all of this module

    return tuple(point.load() for point in entry_points(group=GROUP))


@cache
def loaded(reference: str) -> Any:
    """Return the object that ``module:attribute`` names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)
