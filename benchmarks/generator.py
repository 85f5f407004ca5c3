"""What Mizzen's own code for Ethos-U costs, over what Vela's code costs.

Run ``python benchmarks/generator.py`` for a table, with ``--json`` for the figures, geometric means
over the networks of the folder that MIZZEN_MODELS names and those of the zoo:

`u55_128_cycles_ratio`    cycles of our own code over those of Vela's: of the timing model's and
                          Vela's formula's the worse mean
`u55_256_cycles_ratio`, `u65_512_cycles_ratio`  likewise
`..._model`, `..._formula`  the two means apart
`memory_ratio`            memory of maps of the same code; `flash_ratio` of its constants
`sram_ratio`              memory of maps with `--optimise Size`, over all networks and NPUs;
                          `..._sram_ratio` for each NPU
`kws_u55_128`             cycles of MLPerf Tiny's keyword network on U55-128, the worse of both
`worst`                   the greatest ratio of cycles or memory that a network gets
`steady_gap`              by how much a mean gets worse when filling and draining count nothing
`placement_gap`           memory of the code in least memory over the most that is alive in it at
                          once (`mizzen.analysis.memory`), the geometric mean less one
`size_cycles_ratio`       cycles of that code over Vela's
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
from importlib import import_module
from pathlib import Path
from typing import Any

from mizzen.analysis.memory import memory_report
from mizzen.analysis.memory.layout import ARENA, CACHE
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep, read_network
from mizzen.compiler.ethos_u.makers import compile_tflite, compile_tosa, network_cost
from mizzen.compiler.proof.options import OFF
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

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
EXAMPLES = REPOSITORY / "examples"
ACCELERATORS = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-512")
KEYWORDS, LARGE = "kws_ref_model", "mobilenet_v2"


@dataclass(frozen=True, slots=True)
class Network:
    """A network: a TFLite file, or a region of a PyTorch program as TOSA."""

    name: str
    data: bytes
    is_tosa: bool = False

    def compiled(self, configuration: EthosUConfiguration) -> Artifact:
        """Compile it, without a proof."""
        if self.is_tosa:
            return compile_tosa(self.data, self.name, configuration, OFF, None)
        model = read_network(self.data, self.name)
        return compile_tflite(model, self.data, configuration, OFF, None)


def networks() -> Iterator[Network]:
    """Return the networks of the folder, and those of the zoo."""
    for path in sorted(MODELS.glob("*.tflite")):
        yield Network(path.stem, path.read_bytes())
    yield from zoo()


def zoo() -> Iterator[Network]:
    """Return what of the zoo's networks goes to the NPU, quantised as a user would."""
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS, OwnRegions
    from mizzen.compiler.torch.placement import place
    from mizzen.frontends.torch.int_lowering.int_lower import lower
    from mizzen.frontends.torch.narrowing import read
    from mizzen.package import tosa
    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

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
        placed = place(lowered, OwnRegions(resolve(accelerator)), (), OFF, None)
        for part, code in enumerate(placed.code.values()):
            yield Network(f"{name}-{part}", tosa.write(code.part.graph), is_tosa=True)


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

    network: str
    accelerator: str
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
    network: Network, accelerator: str, effort: Search, *, with_least: bool
) -> Pair | None:
    """Generate code for a network; None if Vela does not compile it, or nothing is on the NPU."""
    configuration = replace(resolve(accelerator), generator=Generator.OWN, search=effort)
    try:
        vela = network.compiled(replace(configuration, generator=Generator.VELA))
    except MizzenError as error:
        print(f"{network.name} {accelerator}: Vela: {error}", file=sys.stderr)
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
        network.name,
        accelerator,
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
    for accelerator in dict.fromkeys(pair.accelerator for pair in pairs):
        of_npu = [pair for pair in pairs if pair.accelerator == accelerator]
        name = accelerator.removeprefix("ethos-").replace("-", "_")
        model, formula = (
            mean([pair.model for pair in of_npu]),
            mean([pair.formula for pair in of_npu]),
        )
        figures[f"{name}_cycles_ratio"] = max(model, formula)
        figures[f"{name}_cycles_ratio_model"] = model
        figures[f"{name}_cycles_ratio_formula"] = formula
        figures[f"{name}_sram_ratio"] = mean([pair.least_memory for pair in of_npu])
        gaps.append(mean([pair.steady for pair in of_npu]) - model)
    figures["sram_ratio"] = mean([pair.least_memory for pair in pairs])
    figures["memory_ratio"] = mean([pair.memory for pair in pairs])
    figures["flash_ratio"] = mean([pair.flash for pair in pairs])
    figures["size_cycles_ratio"] = mean([pair.least_cycles for pair in pairs])
    figures["macs_lost"] = float(sum(pair.lost > 0 for pair in every))
    figures["worst"] = max(max(pair.model, pair.formula, pair.memory) for pair in pairs)
    figures["steady_gap"] = max(gaps)
    figures["placement_gap"] = mean([pair.placed for pair in pairs]) - 1
    for pair in pairs:
        if pair.accelerator == ACCELERATORS[0] and pair.network == KEYWORDS:
            figures["kws_u55_128"] = max(pair.model, pair.formula)
            figures["seconds_kws"] = pair.seconds
        if pair.accelerator == ACCELERATORS[0] and pair.network.startswith(LARGE):
            figures["seconds_mobilenet_v2"] = pair.seconds
    figures["pairs"] = float(len(pairs))
    figures["pairs_apart"] = float(len(every) - len(pairs))
    return figures


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
    pairs: list[Pair] = []
    for network in networks():
        for accelerator in ACCELERATORS:
            if options.only not in network.name or options.on not in accelerator:
                continue
            effort = Search(options.search)
            pair = measured(network, accelerator, effort, with_least=not options.cycles_alone)
            if pair is not None:
                pairs.append(pair)
                print(
                    f"{pair.network:32} {accelerator:14} model {pair.model:.3f} formula "
                    f"{pair.formula:.3f} memory {pair.memory:.3f} flash {pair.flash:.3f} | least "
                    f"{pair.least_memory:.3f} at {pair.least_cycles:.3f} "
                    f"| {pair.seconds:5.1f} s"
                    f"{f' | {pair.apart} operators apart' if pair.apart else ''}",
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
