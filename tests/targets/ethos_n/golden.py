"""Arm's answers: support queries, and small networks as Arm's library compiled them.

They are no part of the repository. They are found in the folder that the environment variable
MIZZEN_GOLDEN names, or in ``../shared/golden`` beside the repository.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mizzen.targets.ethos_n.network import Network

from .network_text import parse_network

REPOSITORY = Path(__file__).resolve().parents[3]
GOLDEN = Path(os.environ.get("MIZZEN_GOLDEN", REPOSITORY.parent / "shared" / "golden"))
ETHOS_N = GOLDEN / "ethosn"


@dataclass(frozen=True)
class Compiled:
    """A network as release 23.02 compiled it for a variant."""

    name: str
    variant: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.variant}.{self.name}"

    @property
    def network(self) -> Network:
        """The network."""
        return read_network(self.folder, self.name)

    @property
    def encn(self) -> bytes:
        """The container."""
        return (self.folder / f"{self}.encn").read_bytes()

    def path(self, suffix: str) -> Path:
        """A file about it: `cmds.json`, `perf.json`."""
        return self.folder / f"{self}.{suffix}"


def read_network(folder: Path, name: str) -> Network:
    """Read a network of a folder."""
    arrays = folder / f"{name}.npz"
    constants = dict(np.load(arrays)) if arrays.exists() else {}
    return parse_network((folder / f"{name}.net").read_text(), constants)


def compiled_networks() -> list[Compiled]:
    """Return all that release 23.02 compiled; none where Arm's answers are not there."""
    folder = ETHOS_N / "networks-23"
    found = (path.name.removesuffix(".encn").split(".", 1) for path in folder.glob("*.encn"))
    return [Compiled(name, variant, folder) for variant, name in sorted(found)]


def queries(release: str) -> Iterator[tuple[str, str, str]]:
    """Return the variant, the query and the library's answer, of release "23" or "25"."""
    with gzip.open(ETHOS_N / f"queries-{release}.tsv.gz", "rt") as file:
        for line in file:
            variant, query, answer = line.rstrip("\n").split("\t")
            yield variant, query, answer


MISSING = "Arm's Ethos-N answers are not here: set MIZZEN_GOLDEN to their folder"
needs_golden = pytest.mark.skipif(not ETHOS_N.exists(), reason=MISSING)
