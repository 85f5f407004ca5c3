"""What Mizzen's own code for Ethos-U costs, over what Vela's code costs.

Run ``python benchmarks/generator.py`` for a table, with ``--json`` for the figures, geometric means
over the networks of the folder that MIZZEN_MODELS names and those of the zoo, for the NPUs whose
names contain what `--on` says:

`u55_128_cycles_ratio`    cycles of our own code over those of Vela's: of the timing model's and
                          Vela's formula's the worse mean
`u55_256_cycles_ratio`, `u65_512_cycles_ratio`  likewise
`u85_128_cycles_ratio`, `u85_256_cycles_ratio`, `u85_512_cycles_ratio`, `u85_1024_cycles_ratio`,
`u85_2048_cycles_ratio`   likewise, of all networks but transformers
`u85_256_transformers_ratio`  of the transformers, and so for each size: the encoder, the vision
                          transformer, and the decoder, which both are given without its state
`u85_256_flash_ratio`     of all networks on U85-256 whose constants lie in flash and are fetched
                          into an SRAM (Ethos_U85_SYS_Flash_High, Shared_Sram)
`..._model`, `..._formula`  of each of these the two means apart
`memory_ratio`            memory of maps of the same code; `flash_ratio` of its constants, of U55
                          and U65; `u85_memory_ratio` and `u85_constants_ratio` of U85;
                          `..._memory_ratio` for each NPU, `u85_256_flash_memory_ratio` with flash
`sram_ratio`, `u85_sram_ratio`  memory of maps with `--optimise Size`, over all networks and NPUs;
                          `..._sram_ratio` for each NPU
`kws_u55_128`             cycles of MLPerf Tiny's keyword network on U55-128, the worse of both
`worst`                   the greatest ratio of cycles or memory that a network gets
`steady_gap`              by how much a mean gets worse when filling and draining count nothing
`placement_gap`           memory of the code in least memory over the most that is alive in it at
                          once (`mizzen.analysis.memory`), the geometric mean less one
`size_cycles_ratio`, `u85_size_cycles_ratio`  cycles of that code over Vela's
`macs_lost`               networks of which Vela has more on the NPU
`pairs`, `pairs_apart`    networks and NPUs that the ratios are of; those of which our own code has
                          other operators on the NPU than Vela's, which no ratio is of
`seconds_kws`, `seconds_mobilenet_v2`  processor seconds of our own compilation, without proof

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
from typing import Any

from generator_networks import Network, networks
from mizzen.analysis.memory import memory_report
from mizzen.analysis.memory.layout import ARENA, CACHE
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.ethos_u.makers import network_cost
from mizzen.diagnostics import Device, MizzenError
from mizzen.report.code import StreamCost
from mizzen.targets.ethos_u.judge.timing import Cause, estimate
from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    Generator,
    Optimise,
    Search,
)
from mizzen.targets.ethos_u.machine.system_config import resolve

KEYWORDS, LARGE = "kws_ref_model", "mobilenet_v2"


@dataclass(frozen=True, slots=True)
class Machine:
    """An NPU, and the memories beside it where they are not Vela's defaults for it.

    words    that name the system and how its memories are used
    regions  the NPU of whose rules the regions of the zoo's networks are
    """

    name: str
    accelerator: str
    regions: str
    words: tuple[str, str] | None = None

    @property
    def is_u85(self) -> bool:
        """Whether it is of the last family, which has figures of its own."""
        return "u85" in self.name

    @property
    def configuration(self) -> EthosUConfiguration:
        """The system that both compile for."""
        system, mode = self.words or (None, None)
        return resolve(self.accelerator, system_config=system, memory_mode=mode)


KEYWORDS_ON = "ethos-u55-128"
"""The NPU that single figures are of."""
MACHINES = (
    *(
        Machine(name, name, "ethos-u55-128")
        for name in ("ethos-u55-128", "ethos-u55-256", "ethos-u65-512")
    ),
    *(
        Machine(f"ethos-u85-{macs}", f"ethos-u85-{macs}", "ethos-u85-256")
        for macs in (128, 256, 512, 1024, 2048)
    ),
    Machine(
        "ethos-u85-256-flash",
        "ethos-u85-256",
        "ethos-u85-256",
        ("Ethos_U85_SYS_Flash_High", "Shared_Sram"),
    ),
)


def seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    of_npu = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(pair.ru_utime + pair.ru_stime for pair in of_npu)


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


@dataclass(frozen=True, slots=True)
class Pair:
    """A network and an NPU: Vela's code, our own, and our own in least memory.

    steady  cycles of our own over Vela's, filling and draining left out
    placed  memory of the code in least memory over what is alive in it at most
    lost    MACs that Vela has on the NPU and we do not
    apart   how many operators of the network only one of both has on the NPU
    seconds of processor, for our own
    """

    network: Network
    machine: Machine
    vela: StreamCost
    own: StreamCost
    least: StreamCost
    steady: float
    placed: float
    lost: int
    apart: int
    seconds: float

    @property
    def model(self) -> float:
        """Ratio of cycles by the timing model."""
        return self.own.cycles / max(self.vela.cycles, 1)

    @property
    def formula(self) -> float:
        """Ratio of cycles by Vela's formula."""
        return self.own.vela_cycles / max(self.vela.vela_cycles, 1)

    @property
    def memory(self) -> float:
        """Ratio of the memory of maps."""
        return self.own.memory_bytes / max(self.vela.memory_bytes, 1)

    @property
    def flash(self) -> float:
        """Ratio of the constants."""
        return self.own.constant_bytes / max(self.vela.constant_bytes, 1)

    @property
    def least_memory(self) -> float:
        """Ratio of the memory of maps, of the code in least memory."""
        return self.least.memory_bytes / max(self.vela.memory_bytes, 1)

    @property
    def least_cycles(self) -> float:
        """Ratio of cycles, of the code in least memory; the worse of both."""
        least, vela = self.least, self.vela
        model = least.cycles / max(vela.cycles, 1)
        return max(model, least.vela_cycles / max(vela.vela_cycles, 1))


def measured(
    network: Network, machine: Machine, effort: Search, *, with_least: bool
) -> Pair | None:
    """Generate code for a network; None if Vela does not compile it, or nothing is on the NPU."""
    configuration = replace(machine.configuration, generator=Generator.OWN, search=effort)
    try:
        vela = network.compiled(replace(configuration, generator=Generator.VELA))
    except MizzenError as error:
        print(f"{network.name} {machine.name}: Vela: {error}", file=sys.stderr)
        return None
    start = seconds()
    own = network.compiled(configuration)
    taken = seconds() - start
    if not (_programs(own) and _programs(vela)):
        return None
    small = replace(configuration, optimise=Optimise.SIZE)
    least = network.compiled(small) if with_least else own
    theirs, ours, smallest = (network_cost(each, configuration) for each in (vela, own, least))
    steady = steady_cycles(own, configuration) / max(steady_cycles(vela, configuration), 1)
    lost = max(0, _macs(vela) - _macs(own))
    return Pair(
        network,
        machine,
        vela=theirs,
        own=ours,
        least=smallest,
        steady=steady,
        placed=over_live(least),
        lost=lost,
        apart=len(_on_npu(own) ^ _on_npu(vela)),
        seconds=taken,
    )


def _programs(artifact: Artifact) -> list[Any]:
    return [step.program for step in artifact.steps if isinstance(step, NpuStep)]


def _macs(artifact: Artifact) -> int:
    return 0 if artifact.report is None else artifact.report.macs_on_npu


def _on_npu(artifact: Artifact) -> set[int]:
    placements = () if artifact.report is None else artifact.report.placements
    return {each.index for each in placements if each.device is Device.NPU}


def over_live(artifact: Artifact) -> float:
    """Return the memory of a network's code over the most that is alive in it at once.

    It is the cache's where there is one: the arena of such files has room for all of it too.
    """
    areas = {area.area: area for area in memory_report(artifact).areas}
    area = areas.get(CACHE, areas[ARENA])
    return area.used_bytes / max(area.live_bytes)


def steady_cycles(artifact: Artifact, configuration: EthosUConfiguration) -> float:
    """Return the cycles of the timing model without those of filling and draining."""
    return sum(
        share
        for program in _programs(artifact)
        for timed in estimate(program, configuration)
        for (cause, _), share in timed.causes.items()
        if cause is not Cause.FILL
    )


def figures_of(every: Sequence[Pair]) -> dict[str, float]:
    """Return the figures by name; ratios of those pairs whose NPUs have the same operators."""
    pairs = [pair for pair in every if not pair.apart]
    figures: dict[str, float] = {}
    gaps: list[float] = []
    for machine in dict.fromkeys(pair.machine for pair in pairs):
        of_npu = [pair for pair in pairs if pair.machine == machine]
        figures |= figures_on(machine, of_npu)
        gaps.append(mean([pair.steady for pair in of_npu]) - mean([pair.model for pair in of_npu]))
    figures |= of_memory(pairs)
    figures["macs_lost"] = float(sum(pair.lost > 0 for pair in every))
    figures["worst"] = max(max(pair.model, pair.formula, pair.memory) for pair in pairs)
    figures["steady_gap"] = max(gaps)
    figures["placement_gap"] = mean([pair.placed for pair in pairs]) - 1
    for pair in pairs:
        if pair.machine.name == KEYWORDS_ON and pair.network.name == KEYWORDS:
            figures["kws_u55_128"] = max(pair.model, pair.formula)
            figures["seconds_kws"] = pair.seconds
        if pair.machine.name == KEYWORDS_ON and pair.network.name.startswith(LARGE):
            figures["seconds_mobilenet_v2"] = pair.seconds
    figures["pairs"] = float(len(pairs))
    figures["pairs_apart"] = float(len(every) - len(pairs))
    return figures


def figures_on(machine: Machine, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the figures of one NPU."""
    name = machine.name.removeprefix("ethos-").replace("-", "_")
    figures: dict[str, float] = {}
    if machine.words:
        figures |= of_cycles(f"{name}_ratio", pairs)
    elif machine.is_u85:
        transformers = [pair for pair in pairs if pair.network.is_transformer]
        others = [pair for pair in pairs if not pair.network.is_transformer]
        figures |= of_cycles(f"{name}_transformers_ratio", transformers)
        figures |= of_cycles(f"{name}_cycles_ratio", others)
    else:
        figures |= of_cycles(f"{name}_cycles_ratio", pairs)
    figures[f"{name}_memory_ratio"] = mean([pair.memory for pair in pairs])
    if not machine.words:
        figures[f"{name}_sram_ratio"] = mean([pair.least_memory for pair in pairs])
    return figures


def of_cycles(name: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the worse mean of cycles, and both; nothing of no pairs."""
    if not pairs:
        return {}
    model, formula = mean([pair.model for pair in pairs]), mean([pair.formula for pair in pairs])
    return {name: max(model, formula), f"{name}_model": model, f"{name}_formula": formula}


def of_memory(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the figures of memory, and of cycles in least memory, for both kinds of NPU."""
    figures: dict[str, float] = {}
    for prefix, constants, is_u85 in (("", "flash", False), ("u85_", "constants", True)):
        of_kind = [
            pair for pair in pairs if pair.machine.is_u85 == is_u85 and not pair.machine.words
        ]
        if of_kind:
            figures[f"{prefix}sram_ratio"] = mean([pair.least_memory for pair in of_kind])
            figures[f"{prefix}memory_ratio"] = mean([pair.memory for pair in of_kind])
            figures[f"{prefix}{constants}_ratio"] = mean([pair.flash for pair in of_kind])
            figures[f"{prefix}size_cycles_ratio"] = mean([pair.least_cycles for pair in of_kind])
    return figures


def measured_on(
    machines: Sequence[Machine], part: str, effort: Search, *, with_least: bool
) -> Iterator[Pair]:
    """Yield networks whose names contain a part, on NPUs, and print what they cost."""
    for regions in dict.fromkeys(machine.regions for machine in machines):
        for network in networks(regions, part):
            for machine in machines:
                if machine.regions != regions:
                    continue
                least = with_least and not machine.words
                pair = measured(network, machine, effort, with_least=least)
                if pair is not None:
                    print(line_of(pair), file=sys.stderr, flush=True)
                    yield pair


def line_of(pair: Pair) -> str:
    """Return what is printed of a network on an NPU."""
    return (
        f"{pair.network.name:32} {pair.machine.name:19} model {pair.model:.3f} formula "
        f"{pair.formula:.3f} memory {pair.memory:.3f} flash {pair.flash:.3f} | least "
        f"{pair.least_memory:.3f} at {pair.least_cycles:.3f} "
        f"| {pair.seconds:5.1f} s"
        f"{f' | {pair.apart} operators apart' if pair.apart else ''}"
    )


def main() -> None:
    """Generate, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--search", choices=[pair.value for pair in Search], default="fast")
    parser.add_argument(
        "--cycles-alone", action="store_true", help="do not look for the code in least memory"
    )
    parser.add_argument("--only", default="", help="networks whose names contain this")
    parser.add_argument("--on", default="", help="NPUs whose names contain this")
    options = parser.parse_args()
    machines = [machine for machine in MACHINES if options.on in machine.name]
    effort, with_least = Search(options.search), not options.cycles_alone
    figures = figures_of(list(measured_on(machines, options.only, effort, with_least=with_least)))
    if options.json:
        print(json.dumps({"figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:36} {value:.3f}")


if __name__ == "__main__":
    main()
