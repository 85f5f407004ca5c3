"""What Mizzen's own code for Ethos-U costs, over what Vela's code costs.

Run ``python benchmarks/generator.py`` for a table, with ``--json`` for the figures, geometric means
over the networks of the folder that MIZZEN_MODELS names and those of the zoo:

`u55_128_cycles_ratio`    cycles of the code that `--generator best` takes over those of Vela's, in
                          no more memory: of the timing model's and Vela's formula's the worse mean
`u55_256_cycles_ratio`, `u65_512_cycles_ratio`  likewise
`..._model`, `..._formula`  the two means apart
`sram_ratio`              memory of maps of the least that takes no more cycles by either, over all
                          networks and NPUs; `..._sram_ratio` for each NPU
`kws_u55_128`             cycles of MLPerf Tiny's keyword network on U55-128, the worse of both
`worst`                   the greatest ratio of cycles or memory that a network gets
`steady_gap`              by how much a mean gets worse when filling and draining count nothing
`placement_gap`           memory of the code in least memory over the most that is alive in it at
                          once (`mizzen.analysis.memory`), the geometric mean less one
`seconds_kws`, `seconds_mobilenet_v2`  processor seconds of Vela's run and ours

Vela runs with its defaults for each NPU. Cycles are estimates, not measurements.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import math
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from mizzen.analysis.memory import memory_report
from mizzen.analysis.memory.layout import ARENA, CACHE
from mizzen.artifact.loading import artifact_of
from mizzen.compiler.ethos_u.generator.improve import improved, smallest
from mizzen.compiler.ethos_u.generator.network import parts_of
from mizzen.compiler.ethos_u.generator.search import maps_bytes
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.report.code import StreamCost
from mizzen.targets.ethos_u.judge.timing import Cause, estimate
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator, Search
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
EXAMPLES = REPOSITORY / "examples"
ACCELERATORS = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-512")
KEYWORDS, LARGE = "kws_ref_model", "mobilenet_v2"


@dataclass(frozen=True, slots=True)
class Network:
    """A network as it goes to Vela: a TFLite file, or a region of a PyTorch program as TOSA."""

    name: str
    data: bytes
    form: NetworkForm


def networks() -> Iterator[Network]:
    """Return the networks of the folder, and those of the zoo."""
    for path in sorted(MODELS.glob("*.tflite")):
        yield Network(path.stem, path.read_bytes(), NetworkForm.TFLITE)
    yield from zoo()


def zoo() -> Iterator[Network]:
    """Return what of the zoo's networks goes to the NPU, quantised as a user would."""
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.compiler.ethos_u.vela.regions import TosaCode, TosaRegions
    from mizzen.compiler.proof.options import OFF
    from mizzen.compiler.torch.placement import place
    from mizzen.frontends.torch.int_lowering.int_lower import lower
    from mizzen.frontends.torch.narrowing import read
    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config
    from mizzen.targets.ethos_u.legal.tosa import WINDOW_LIMITS

    sys.path.insert(0, str(EXAMPLES))
    torch.set_num_threads(1)
    entries: dict[str, Any] = import_module("zoo").NETWORKS
    accelerator = ACCELERATORS[0]
    for name, entry in entries.items():
        quantizer = EthosUQuantizer(accelerator).set_global(get_symmetric_quantization_config())
        exported = torch.export.export(entry.build(), entry.example_inputs())
        prepared: Any = prepare_pt2e(exported.module(), quantizer)
        for inputs in entry.calibration():
            prepared(*inputs)
        converted = torch.export.export(convert_pt2e(prepared), entry.example_inputs())
        lowered = lower(read(converted, name), WINDOW_LIMITS)
        placed = place(lowered, TosaRegions(resolve(accelerator)), (), OFF, None)
        for part, code in enumerate(placed.code.values()):
            assert isinstance(code, TosaCode)
            yield Network(f"{name}-{part}", code.tosa, NetworkForm.TOSA)


def seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    rows = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(row.ru_utime + row.ru_stime for row in rows)


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


@dataclass(frozen=True, slots=True)
class Pair:
    """A network and an NPU: Vela's code, the one that is taken, and the one in least memory.

    steady  cycles of the taken code over Vela's, filling and draining left out
    placed  memory of the code in least memory over what is alive in it at most
    seconds of processor, Vela's run and ours
    """

    network: str
    accelerator: str
    vela: StreamCost
    taken: StreamCost
    least: StreamCost
    steady: float
    placed: float
    seconds: float

    @property
    def model(self) -> float:
        """Ratio of cycles by the timing model."""
        return self.taken.cycles / max(self.vela.cycles, 1)

    @property
    def formula(self) -> float:
        """Ratio of cycles by Vela's formula."""
        return self.taken.vela_cycles / max(self.vela.vela_cycles, 1)

    @property
    def memory(self) -> float:
        """Ratio of the memory of maps, of the code that is taken."""
        return maps_bytes(self.taken) / max(maps_bytes(self.vela), 1)

    @property
    def least_memory(self) -> float:
        """Ratio of the memory of maps, of the code in least memory."""
        return maps_bytes(self.least) / max(maps_bytes(self.vela), 1)


def measured(
    network: Network, accelerator: str, effort: Search, *, with_least: bool
) -> Pair | None:
    """Generate code for a network; None if Vela does not compile it."""
    configuration = replace(resolve(accelerator), generator=Generator.BEST, search=effort)
    start = seconds()
    compiled = generate(network.data, configuration, network.form)
    if not isinstance(compiled, Compiled):
        return None
    source = Source(network.data, network.form)
    written = improved(compiled, source, configuration)
    taken = seconds() - start
    if not written.choices:
        return None
    least = smallest(compiled, source, configuration) if with_least else written
    vela = total([row.vela for row in written.choices if row.vela])
    ours, small = (
        total([row.cost for row in each.choices if row.cost]) for each in (written, least)
    )
    steady = steady_cycles(written, configuration) / max(steady_cycles(compiled, configuration), 1)
    placed = over_live(least)
    return Pair(network.name, accelerator, vela, ours, small, steady, placed, taken)


def over_live(compiled: Compiled) -> float:
    """Return the memory of a network's code over the most that is alive in it at once.

    It is the cache's where there is one: the arena of such files has room for all of it too.
    """
    areas = memory_report(artifact_of(compiled.network, "network")).areas
    rows = {row.area: row for row in areas}
    row = rows.get(CACHE, rows[ARENA])
    return row.used_bytes / max(row.live_bytes)


def steady_cycles(compiled: Compiled, configuration: EthosUConfiguration) -> float:
    """Return the cycles of the timing model without those of filling and draining."""
    return sum(
        share
        for part in parts_of(compiled)[1]
        for row in estimate(part.program, configuration)
        for (cause, _), share in row.causes.items()
        if cause is not Cause.FILL
    )


def total(costs: Sequence[StreamCost]) -> StreamCost:
    """Add up cycles and constants; of memory, take the most that one has."""
    return StreamCost(
        sum(row.cycles for row in costs),
        sum(row.vela_cycles for row in costs),
        max(row.arena_bytes for row in costs),
        max(row.fast_bytes for row in costs),
        sum(row.constant_bytes for row in costs),
    )


def figures_of(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the figures by name."""
    found: dict[str, float] = {}
    gaps: list[float] = []
    for accelerator in dict.fromkeys(row.accelerator for row in pairs):
        rows = [row for row in pairs if row.accelerator == accelerator]
        name = accelerator.removeprefix("ethos-").replace("-", "_")
        model, formula = mean([row.model for row in rows]), mean([row.formula for row in rows])
        found[f"{name}_cycles_ratio"] = max(model, formula)
        found[f"{name}_cycles_ratio_model"] = model
        found[f"{name}_cycles_ratio_formula"] = formula
        found[f"{name}_sram_ratio"] = mean([row.least_memory for row in rows])
        gaps.append(mean([row.steady for row in rows]) - model)
    found["sram_ratio"] = mean([row.least_memory for row in pairs])
    found["worst"] = max(max(row.model, row.formula, row.memory) for row in pairs)
    found["steady_gap"] = max(gaps)
    found["placement_gap"] = mean([row.placed for row in pairs]) - 1
    for row in pairs:
        if row.accelerator == ACCELERATORS[0] and row.network == KEYWORDS:
            found["kws_u55_128"] = max(row.model, row.formula)
            found["seconds_kws"] = row.seconds
        if row.accelerator == ACCELERATORS[0] and row.network.startswith(LARGE):
            found["seconds_mobilenet_v2"] = row.seconds
    found["pairs"] = float(len(pairs))
    return found


def main() -> None:
    """Generate, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--search", choices=[row.value for row in Search], default="fast")
    parser.add_argument(
        "--cycles-alone", action="store_true", help="do not look for the code in least memory"
    )
    parser.add_argument("--only", default="", help="networks whose names contain this")
    parser.add_argument("--on", default="", help="NPUs whose names contain this")
    options = parser.parse_args()
    pairs: list[Pair] = []
    for network in networks():
        for accelerator in ACCELERATORS:
            if options.only not in network.name or options.on not in accelerator:
                continue
            effort = Search(options.search)
            row = measured(network, accelerator, effort, with_least=not options.cycles_alone)
            if row is not None:
                pairs.append(row)
                print(
                    f"{row.network:32} {accelerator:14} model {row.model:.3f} formula "
                    f"{row.formula:.3f} memory {row.memory:.3f} | least {row.least_memory:.3f} "
                    f"| {row.seconds:5.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    figures = figures_of(pairs)
    if options.json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:32} {value:.3f}")


if __name__ == "__main__":
    main()
