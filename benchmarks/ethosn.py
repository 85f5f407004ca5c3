"""Ethos-N against Arm's own Support Library, whose answers and streams are recorded.

Run ``python benchmarks/ethosn.py`` for a table, with ``--json`` for the figures:

queries_wrong              support queries, of both releases, that are answered otherwise
weight_streams_differing   passes whose weights are encoded otherwise
identical_streams_fraction networks whose container is the same to the byte
cycles_ratio               estimated cycles of ours over Arm's, geometric mean of all networks
weights_per_s              that are encoded in a second of one core, the worst layer

The answers are in the folder that MIZZEN_GOLDEN names, or in ``../shared/golden``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ethos_n_weights import figures_of
from ethos_n_weights import rows as rows_of_weights
from mizzen.targets.ethos_n.commands_values import McePle
from mizzen.targets.ethos_n.compile import compile_network
from mizzen.targets.ethos_n.config import (
    Profile,
    VariantConfiguration,
    capabilities_of,
    find_variant,
)
from mizzen.targets.ethos_n.legal import supported
from mizzen.targets.ethos_n.network import Network, SpaceToDepth, Split, StandalonePadding
from mizzen.targets.ethos_n.program import Program, program_of, read_program
from mizzen.targets.ethos_n.timing import cycles, passes_of

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))
from targets.ethos_n.network_text import parse_network, parse_query

GOLDEN = Path(os.environ.get("MIZZEN_GOLDEN", REPOSITORY.parent / "shared" / "golden")) / "ethosn"
RELEASES = {"23": Profile.V23_02, "25": Profile.V25_03}
WITHOUT_INFOS = (Split, SpaceToDepth, StandalonePadding)
"""Operations of whose answers the output infos were not recorded."""


@dataclass(frozen=True)
class Row:
    """One network for one variant.

    seconds    of the processor, that compiling it took
    streams    passes with weights, and how many of them are encoded otherwise than by Arm
    cycles     estimated, of ours and of Arm's
    """

    name: str
    seconds: float
    is_identical: bool
    streams: int
    differing: int
    ours_cycles: int
    arms_cycles: int


def wrong_queries(release: str) -> tuple[int, int]:
    """Ask every recorded query; gives how many are answered otherwise, and how many there are."""
    wrong = asked = 0
    with gzip.open(GOLDEN / f"queries-{release}.tsv.gz", "rt") as file:
        for line in file:
            variant, text, recorded = line.rstrip("\n").split("\t")
            asked += 1
            wrong += answer(variant, text, RELEASES[release]) != recorded.rstrip()
    return wrong, asked


def answer(variant: str, text: str, profile: Profile) -> str:
    """Answer a query in the form of the records."""
    query = parse_query(text)
    given = supported(query, capabilities_of(find_variant(variant)), profile)
    infos = ""
    if not isinstance(query.operation, WITHOUT_INFOS):
        infos = " 0 0 0 0 u8 0 1"
        for info in given.outputs[:1]:
            q = info.quantization
            shape = " ".join(map(str, info.shape))
            infos = f" {shape} {info.data_type.name.lower()} {q.zero_point} {q.scale:.9g}"
    return f"{given.level.name[0]}{infos} | {given.message}".rstrip()


def networks() -> Iterator[Row]:
    """Compile every network that Arm compiled, for the same variant."""
    folder = GOLDEN / "networks-23"
    for path in sorted(folder.glob("*.encn")):
        variant, name = path.stem.split(".", 1)
        arrays = folder / f"{name}.npz"
        constants = dict(np.load(arrays)) if arrays.exists() else {}
        network = parse_network((folder / f"{name}.net").read_text(), constants)
        yield compared(f"{variant} {name}", network, variant, path.read_bytes())


def compared(name: str, network: Network, variant: str, arms: bytes) -> Row:
    """Compile a network and hold it to Arm's container."""
    configuration = VariantConfiguration(find_variant(f"Ethos-N78_{variant}"))
    capabilities = configuration.capabilities
    start = time.process_time()
    compiled = compile_network(network, configuration)
    seconds = time.process_time() - start
    ours_program = program_of(compiled.container, capabilities)
    arms_program = read_program(arms, capabilities)
    ours_streams, arms_streams = weight_streams(ours_program), weight_streams(arms_program)
    same = sum(a == b for a, b in zip(ours_streams, arms_streams, strict=False))
    return Row(
        name,
        seconds,
        compiled.serialize() == arms,
        len(arms_streams),
        len(arms_streams) - same,
        cycles(passes_of(ours_program), capabilities),
        cycles(passes_of(arms_program), capabilities),
    )


def weight_streams(program: Program) -> list[bytes]:
    """Return the encoded weights of each pass."""
    return [
        program.constant(command.weights.dram_buffer_id)
        for command in program.commands
        if isinstance(command, McePle)
    ]


def main() -> None:
    """Measure, and print a table or the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args()
    if not GOLDEN.is_dir():
        sys.exit(f"Arm's Ethos-N answers must be in {GOLDEN}, or where MIZZEN_GOLDEN says")
    asked = {release: wrong_queries(release) for release in RELEASES}
    rows = list(networks())
    weights = figures_of(rows_of_weights())
    logarithms = [math.log(row.ours_cycles / row.arms_cycles) for row in rows]
    figures = {
        "queries_wrong": sum(wrong for wrong, _ in asked.values()),
        "weight_streams_differing": sum(row.differing for row in rows),
        "identical_streams_fraction": sum(row.is_identical for row in rows) / len(rows),
        "cycles_ratio": math.exp(sum(logarithms) / len(logarithms)),
        "weights_per_s": weights["weights_per_s"],
    }
    if options.json:
        print(json.dumps({"figures": figures}, indent=1))
        return
    for release, (wrong, count) in asked.items():
        print(f"release {release}: {count - wrong} of {count} queries answered as Arm does")
    print(f"{'network':44} identical  weights  cycles ours/Arm's  compiled in")
    for row in rows:
        streams = f"{row.streams - row.differing}/{row.streams}"
        ratio = row.ours_cycles / row.arms_cycles
        same = "yes" if row.is_identical else "no"
        print(f"{row.name:44} {same:9}  {streams:>7}  {ratio:17.3f}  {row.seconds:9.3f} s")
    for name, figure in figures.items():
        print(f"{name:28} {figure:g}")


if __name__ == "__main__":
    main()
