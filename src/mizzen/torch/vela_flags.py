"""Vela's command line in a compile specification: which flags there are, and what becomes of them.

A flag sets something, says again what the specification's own arguments say, changes only what is
printed, or has no effect on the compiler's present core; those of the last two kinds are taken and
noted. Ref: Vela 5.2.0, OPTIONS.md and `vela --help`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from mizzen.diagnostics import Diagnostic, MizzenError, Severity, fail


class Effect(Enum):
    """What a flag does here."""

    SETS = auto()
    SAYS_AGAIN = auto()
    PRINTS = auto()
    NOTHING = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of Vela's.

    takes_value  whether a value follows
    why          why it has no effect, or what to do instead
    """

    name: str
    effect: Effect
    takes_value: bool = False
    why: str = ""


def _printing(names: str) -> Iterator[Flag]:
    return (Flag(f"--{name}", Effect.PRINTS) for name in names.split())


def _without_effect(names: str, why: str, *, takes_value: bool) -> Iterator[Flag]:
    return (Flag(f"--{name}", Effect.NOTHING, takes_value, why) for name in names.split())


def _refused(name: str, why: str, *, takes_value: bool) -> Flag:
    return Flag(f"--{name}", Effect.REFUSED, takes_value, why)


DEPRECATED = "Vela's present core takes no notice of it"
FLAGS: Mapping[str, Flag] = {
    flag.name: flag
    for flag in (
        Flag("--optimise", Effect.SETS, True),
        Flag("--arena-cache-size", Effect.SETS, True),
        Flag("--tensor-allocator", Effect.SETS, True),
        Flag("--cpu-tensor-alignment", Effect.SETS, True),
        Flag("--accelerator-config", Effect.SAYS_AGAIN, True),
        Flag("--system-config", Effect.SAYS_AGAIN, True),
        Flag("--memory-mode", Effect.SAYS_AGAIN, True),
        Flag("--config", Effect.SAYS_AGAIN, True),
        Flag("--output-format", Effect.SAYS_AGAIN, True),
        Flag("--cop-format", Effect.SAYS_AGAIN, True),
        *_printing(
            """verbose-all verbose-config verbose-graph verbose-quantization verbose-packing
            verbose-tensor-purpose verbose-tensor-format verbose-schedule verbose-allocation
            verbose-high-level-command-stream verbose-register-command-stream verbose-operators
            verbose-weights verbose-cycle-estimate verbose-performance verbose-progress
            show-cpu-operations show-subgraph-io-summary timing enable-debug-db"""
        ),
        *_without_effect(
            """debug-force-regor disable-chaining disable-fwd disable-cascading disable-buffering
            disable-ifm-reuse""",
            DEPRECATED,
            takes_value=False,
        ),
        *_without_effect(
            "max-block-dependency recursion-limit hillclimb-max-iterations",
            DEPRECATED,
            takes_value=True,
        ),
        *_without_effect(
            "force-symmetric-int-weights",
            "weights of a PyTorch program are symmetric as they are",
            takes_value=False,
        ),
        *_without_effect(
            "experimental-softmax-int16-neg-exp-range",
            "it is for the SOFTMAX of TFLite, which no PyTorch program has",
            takes_value=True,
        ),
        _refused(
            "separate-io-regions",
            "ExecuTorch's runtime for microcontrollers copies inputs and outputs to region 1",
            takes_value=False,
        ),
        _refused(
            "debug-force-legacy-core", "the code is Mizzen's own", takes_value=False
        ),
        _refused(
            "ignore-ops", "give EthosUPartitioner its additional_checks", takes_value=True
        ),
        _refused(
            "output-dir", "call dump_intermediate_artifacts_to on the specification",
            takes_value=True,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """What flags ask for.

    values  flag to its value: of those that set something, and those that say something again
    notes   one for each flag that has no effect
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[Diagnostic, ...] = ()


def asked(flags: Sequence[str]) -> Asked:
    """Take flags apart: ``--name=value``, or ``--name value`` in one string or two.

    E224 for one that Vela has not, that lacks its value, or that cannot be followed here.
    """
    words = iter([word for flag in flags for word in _words(flag)])
    values: dict[str, str] = {}
    notes: list[Diagnostic] = []
    for word in words:
        name, _, value = word.partition("=")
        known = FLAGS.get(name)
        if known is None:
            raise _wrong(f"extra_flags must be flags of Vela's, not {name!r}", "see `vela --help`")
        if known.takes_value and not value:
            value = next(words, "")
        if known.takes_value != bool(value):
            raise _wrong(f"{name} must have {'a' if known.takes_value else 'no'} value")
        match known.effect:
            case Effect.SETS | Effect.SAYS_AGAIN:
                values[name] = value
            case Effect.PRINTS:
                notes.append(_note(f"{name} only prints, and nothing is printed here"))
            case Effect.NOTHING:
                notes.append(_note(f"{name} has no effect: {known.why}"))
            case Effect.REFUSED:
                raise _wrong(f"{name} cannot be followed here", known.why)
    return Asked(values, tuple(notes))


def _words(flag: str) -> list[str]:
    """Return the words of one string; a value after ``=`` may have spaces."""
    name, equals, _ = flag.partition("=")
    return [flag] if equals and " " not in name.strip() else flag.split()


def require_same(values: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Check that flags say of the specification's arguments what these say. E224 if not."""
    for name, value in values.items():
        if name in own and value.lower() != own[name].lower():
            raise _wrong(
                f"{name} must be {own[name]}, as the specification's own arguments say, not "
                f"{value}",
                "give target, system_config, memory_mode and config_ini as arguments",
            )


def number_of_bytes(name: str, text: str) -> int:
    """Return a value that is a number of bytes. E224 for another."""
    if not text.isdecimal():
        raise _wrong(f"{name} must have a number of bytes, not {text!r}")
    return int(text)


def _note(text: str) -> Diagnostic:
    return Diagnostic("W224", text, Severity.NOTE)


def _wrong(message: str, help: str | None = None) -> MizzenError:
    return fail("E224", message, help=help)
