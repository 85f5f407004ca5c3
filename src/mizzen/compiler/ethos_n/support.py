"""What the Ethos-N78 variants support, from the target's tables."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.compiler.support import Support, SupportRule, SupportTable, SupportText
from mizzen.targets.ethos_n.config import NAMES, VARIANTS, Profile, Variant, capabilities_of
from mizzen.targets.ethos_n.legal import OPERATIONS
from mizzen.targets.ethos_n.sim.inferred import INFERRED
from mizzen.targets.rules import Level, rules_of

FAMILY = "Ethos-N78"
SOURCE = "Ethos-N driver stack 23.02, SupportQueries.hpp"


def support() -> Support:
    """Return the tables."""
    names = [
        kind.__name__
        for kind, operation in OPERATIONS.items()
        if Profile.V23_02 in operation.profiles
    ]
    return Support(
        operators=dict.fromkeys(names, (FAMILY,)),
        rules=tuple(_rules()),
        accelerators=tuple(map(_accelerator_data, VARIANTS.values())),
        inferred=tuple(
            {"code": path.code, "npus": [FAMILY], "what": path.what, "bound": path.bound}
            for path in INFERRED
        ),
        parts=(
            _accelerators(),
            SupportText(f"Operations of {FAMILY}", ", ".join(names)),
            SupportText("Options for --target-option", ", ".join(NAMES)),
            _inferred(),
        ),
    )


def _rules() -> Iterator[SupportRule]:
    for kind, entry in OPERATIONS.items():
        for rule in rules_of(entry.table):
            if Profile.V23_02 in rule.on and rule.level is not Level.SUPPORTED:
                operators = frozenset({kind.__name__})
                yield SupportRule(rule.id, (FAMILY,), rule.limit, rule.help, SOURCE, operators)


def _macs(variant: Variant) -> int:
    """Return the 8-bit multiply-accumulates per cycle of all engines."""
    capabilities = capabilities_of(variant)
    return capabilities.igs * capabilities.ogs * capabilities.mac_units_per_og


def _accelerator_data(variant: Variant) -> dict[str, object]:
    return {
        "name": variant.name,
        "macs": _macs(variant),
        "engines": variant.engines,
        "sram_kib": variant.sram_kib,
        "ple_lanes": variant.ple_lanes,
        "simulated": True,
    }


def _accelerators() -> SupportTable:
    return SupportTable(
        f"Accelerators of {FAMILY}",
        ("accelerator", "MACs/cycle", "engines", "SRAM", "Mizzen"),
        tuple(
            (
                variant.name,
                str(_macs(variant)),
                str(variant.engines),
                f"{variant.sram_kib} KiB",
                "compiles, runs",
            )
            for variant in VARIANTS.values()
        ),
        right=(1, 2, 3),
    )


def _inferred() -> SupportTable:
    lines = tuple(
        (path.code, "-" if path.bound is None else str(path.bound), path.what) for path in INFERRED
    )
    headings = ("note", "bound", "not published, and how it is taken")
    return SupportTable(f"In the simulator of {FAMILY}", headings, lines, right=(1,))
