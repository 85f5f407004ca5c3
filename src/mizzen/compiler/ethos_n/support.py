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
    names = [kind.__name__ for kind, row in OPERATIONS.items() if Profile.V23_02 in row.profiles]
    return Support(
        operators=dict.fromkeys(names, (FAMILY,)),
        rules=tuple(_rules()),
        accelerators=tuple(map(_accelerator_data, VARIANTS.values())),
        inferred=tuple(
            {"code": row.code, "npus": [FAMILY], "what": row.what, "bound": row.bound}
            for row in INFERRED
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


def _macs(row: Variant) -> int:
    """Return the 8-bit multiply-accumulates per cycle of all engines."""
    capabilities = capabilities_of(row)
    return capabilities.igs * capabilities.ogs * capabilities.mac_units_per_og


def _accelerator_data(row: Variant) -> dict[str, object]:
    return {
        "name": row.name,
        "macs": _macs(row),
        "engines": row.engines,
        "sram_kib": row.sram_kib,
        "ple_lanes": row.ple_lanes,
        "simulated": True,
    }


def _accelerators() -> SupportTable:
    return SupportTable(
        f"Accelerators of {FAMILY}",
        ("accelerator", "MACs/cycle", "engines", "SRAM", "Mizzen"),
        tuple(
            (row.name, str(_macs(row)), str(row.engines), f"{row.sram_kib} KiB", "compiles, runs")
            for row in VARIANTS.values()
        ),
        right=(1, 2, 3),
    )


def _inferred() -> SupportTable:
    rows = tuple(
        (row.code, "-" if row.bound is None else str(row.bound), row.what) for row in INFERRED
    )
    headings = ("note", "bound", "not published, and how it is taken")
    return SupportTable(f"In the simulator of {FAMILY}", headings, rows, right=(1,))
