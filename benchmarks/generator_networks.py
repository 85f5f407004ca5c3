"""The networks of which our own code for Ethos-U is compared with Vela's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.makers import compile_tflite, compile_tosa
from mizzen.compiler.proof.options import OFF
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.system_config import resolve

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
EXAMPLES = REPOSITORY / "examples"
TRANSFORMERS = ("encoder", "vit_tiny", "decoder")
"""Of the zoo."""
STATES = {"decoder": ("attention.keys", "attention.values")}
"""What networks of the zoo keep from one call to the next. Vela has no state on the NPU: both
compile the network that is given what it keeps, and gives it back."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network: a TFLite file, or a region of a PyTorch program as TOSA."""

    name: str
    data: bytes
    is_tosa: bool = False

    @property
    def is_transformer(self) -> bool:
        """Whether it is one of the zoo's transformers."""
        return self.is_tosa and self.name.rpartition("-")[0] in TRANSFORMERS

    def compiled(self, configuration: EthosUConfiguration) -> Artifact:
        """Compile it, without a proof."""
        if self.is_tosa:
            return compile_tosa(self.data, self.name, configuration, OFF, None)
        model = read_network(self.data, self.name)
        return compile_tflite(model, self.data, configuration, OFF, None)


def networks(accelerator: str, part: str) -> Iterator[Network]:
    """Return the networks of the folder and of the zoo whose names contain a part.

    accelerator  of whose rules the regions of the zoo's networks are
    """
    for path in sorted(MODELS.glob("*.tflite")):
        if part in path.stem:
            yield Network(path.stem, path.read_bytes())
    sys.path.insert(0, str(EXAMPLES))
    entries: dict[str, Any] = import_module("zoo").NETWORKS
    for name, entry in entries.items():
        if part in name or name in part:
            regions = _regions(name, entry, accelerator)
            yield from (region for region in regions if part in region.name)


def _regions(name: str, entry: Any, accelerator: str) -> Iterator[Network]:
    """Return what of a network of the zoo goes to the NPU, quantised as a user would."""
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from mizzen.compiler.ethos_u.regions import WINDOW_LIMITS, OwnRegions
    from mizzen.compiler.torch.placement import place
    from mizzen.frontends.torch.int_lowering.int_lower import lower
    from mizzen.frontends.torch.narrowing import read
    from mizzen.package import tosa
    from mizzen.quantize import EthosUQuantizer, get_symmetric_quantization_config

    torch.set_num_threads(1)
    module, states = _without_state(entry.build(), STATES.get(name, ()))
    example = (*entry.example_inputs(), *states)
    quantizer = EthosUQuantizer(accelerator).set_global(get_symmetric_quantization_config())
    exported = torch.export.export(module, example)
    prepared: Any = prepare_pt2e(exported.module(), quantizer)
    for inputs in entry.calibration():
        prepared(*inputs, *states)
    converted = torch.export.export(convert_pt2e(prepared), example)
    lowered = lower(read(converted, name), WINDOW_LIMITS)
    placed = place(lowered, OwnRegions(resolve(accelerator)), (), OFF, None)
    for part, code in enumerate(placed.code.values()):
        yield Network(f"{name}-{part}", tosa.write(code.part.graph), is_tosa=True)


def _without_state(network: Any, names: tuple[str, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return a network that is given what it keeps, and gives it back; and what it keeps now."""
    from torch import Tensor, nn
    from torch.func import functional_call

    if not names:
        return network, ()

    class Stateless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
            kept = {name: state.clone() for name, state in zip(names, states, strict=True)}
            return functional_call(self.network, kept, (x,)), *kept.values()

    return Stateless().eval(), tuple(network.get_buffer(name).clone() for name in names)
