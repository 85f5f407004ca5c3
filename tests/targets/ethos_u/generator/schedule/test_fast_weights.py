"""Weights that U85 decodes fast: where decoding is what takes time, and worth their bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Kernel, Role, Sequence
from mizzen.targets.ethos_u.generator.schedule import schedule
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Feature
from mizzen.targets.ethos_u.machine.system_config import resolve

from ..program_judges import require_right  # noqa: TID252 tests are no package with a name
from ..sequences import Network  # noqa: TID252


def network(shape: tuple[int, int, int]) -> Sequence:
    """Return a convolution of one element."""
    net = Network()
    image = net.tensor(shape, Role.INPUT)
    return net.sequence((image,), (net.convolution(image, 256, Kernel()),))


def formats(shape: tuple[int, int, int], configuration: EthosUConfiguration) -> list[bool]:
    return [blob.fast for blob in schedule(network(shape), configuration).blobs]


DENSE, IMAGE = (1, 1, 512), (40, 40, 64)


@pytest.mark.parametrize(
    ("name", "shape", "fast"),
    [
        ("ethos-u85-128", DENSE, True),
        ("ethos-u85-256", DENSE, True),
        ("ethos-u85-512", DENSE, True),
        ("ethos-u85-1024", DENSE, False),  # four decoders give as many weights
        ("ethos-u85-256", IMAGE, False),  # the array takes longer
        ("ethos-u65-256", DENSE, False),
    ],
)
def test_fast_weights_are_taken_where_decoding_takes_the_time(
    name: str, shape: tuple[int, int, int], fast: bool
) -> None:
    assert formats(shape, resolve(name)) == [fast]


def test_fast_weights_are_right() -> None:
    sequence, configuration = network(DENSE), resolve("ethos-u85-512")
    accelerator = configuration.accelerator
    made = schedule(sequence, configuration)
    require_right(emit(made, accelerator), sequence, accelerator)


def test_what_comes_from_slow_memory_stays_short() -> None:
    configuration = resolve(
        "ethos-u85-256", system_config="Ethos_U85_SYS_Flash_High", memory_mode="Shared_Sram"
    )
    assert formats(DENSE, configuration) == [False]


def test_nobody_gets_what_is_disabled() -> None:
    configuration = replace(resolve("ethos-u85-256"), disabled=(Feature.FAST_WEIGHTS,))
    assert formats(DENSE, configuration) == [False]
