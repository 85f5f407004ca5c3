"""How many images a tile keeps of each input: the depth of the pipeline between two layers."""

from __future__ import annotations

from enum import IntEnum

from mizzen.mesh.network.network import Layer, Network


class Buffering(IntEnum):
    """How many slots messages have at least, at both ends.

    DOUBLE  the next box comes while one is used, and goes while the next is computed
    SINGLE  boxes come and go while the element waits: less memory, and a longer period
    """

    SINGLE = 1
    DOUBLE = 2


def depths_of(network: Network, stages: list[int] | None = None) -> list[int]:
    """Return for each layer the longest way to it from the inputs, in stages.

    `stages` are those of each layer: layers of one stage work on the same image, one after the
    other. By default each layer is a stage of its own.
    """
    of = stages or list(range(len(network.layers)))
    depths = [0] * (max(of, default=0) + 1)
    for index, layer in enumerate(network.layers):
        for tensor in layer.inputs:
            producer = network.producer.get(tensor)
            if producer is not None and of[producer] != of[index]:
                depths[of[index]] = max(depths[of[index]], depths[of[producer]] + 1)
    return [depths[stage] for stage in of]


def input_slots(
    network: Network, layer: Layer, depth: int, depths: list[int], buffering: Buffering
) -> tuple[int, ...]:
    """Return the slots of each distinct input of a layer that comes as messages.

    The longest way decides: what comes from further above waits for the other inputs. What comes
    from outside is fetched when it is needed.
    """
    slots: list[int] = []
    for tensor in dict.fromkeys(layer.inputs):
        producer = network.producer.get(tensor)
        if producer is None:
            slots.append(1)
        else:
            slots.append(slots_between(depths[producer], depth, buffering))
    return tuple(slots)


def slots_between(producer: int, consumer: int, buffering: Buffering) -> int:
    """Return the slots of an input whose producer is so many stages above its consumer."""
    return max(int(buffering), consumer - producer + int(buffering) - 1)
