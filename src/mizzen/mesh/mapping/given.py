"""Mappings of tiles whose elements someone else chose: by hand, or with a mapper of their own."""

from __future__ import annotations

from dataclasses import replace

from mizzen.diagnostics import fail
from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.assembly import Placed, assembled
from mizzen.mesh.mapping.chip_net import ChipNet, TreeRouter, chip_net
from mizzen.mesh.mapping.chip_trees import demands_of, shares_of
from mizzen.mesh.mapping.depths import Buffering
from mizzen.mesh.mapping.fitting import Fitting
from mizzen.mesh.mapping.mapping import Mapping, Tile
from mizzen.mesh.mapping.options import Multicast
from mizzen.mesh.mapping.template import Template, flows_of, plain_depths, slots_of_tiles
from mizzen.mesh.network.network import Network

ROUNDS = 2


def reassigned(mapping: Mapping, elements: list[int]) -> Mapping:
    """Return a mapping with its tiles on other elements, and messages and slots for them.

    `elements` has one for each tile. E517 where an element's memory is too small for its tiles.
    """
    of_replica: list[list[Tile]] = [[] for _ in range(mapping.replicas)]
    firsts: list[int] = [-1] * mapping.replicas
    for index, (tile, element) in enumerate(zip(mapping.tiles, elements, strict=True)):
        if firsts[tile.replica] < 0:
            firsts[tile.replica] = index
        first = firsts[tile.replica]
        into = None if tile.sums_into is None else tile.sums_into - first
        of_replica[tile.replica].append(replace(tile, element=element, sums_into=into))
    return mapping_of(mapping.machine, mapping.network, of_replica, mapping.seed)


def mapping_of(
    machine: Machine, network: Network, replicas: list[list[Tile]], seed: int = 0
) -> Mapping:
    """Return the mapping of tiles on elements, a list for each replica.

    Indices of `sums_into` are those of a replica's own tiles. E517 where an element's memory is too
    small for its tiles.
    """
    net = chip_net(machine)
    dead = machine.link_dead.nonzero()[0].tolist()
    router = TreeRouter(net, list(range(machine.chips)), dead)
    placed = [_placed(machine, net, router, network, tiles) for tiles in replicas]
    return assembled(machine, net, placed, seed)


def _placed(
    machine: Machine, net: ChipNet, router: TreeRouter, network: Network, tiles: list[Tile]
) -> Placed:
    elements = sorted({tile.element for tile in tiles})
    seat = {element: at for at, element in enumerate(elements)}
    own = tuple(replace(tile, replica=0, element=seat[tile.element]) for tile in tiles)
    flows = tuple(flows_of(network, own, Multicast.TREE))
    depths = plain_depths(network, own)
    slots = slots_of_tiles(network, depths, own, flows, Buffering.DOUBLE)
    kinds = tuple(machine.element_kind[elements].tolist())
    template = Template(network, own, kinds, flows, slots)
    template = _fitted(machine, template, elements)
    chips: list[int] = machine.element_chip[elements].tolist()
    shares = shares_of(template, chips)
    routed = router.route(demands_of(shares, list(range(machine.chips))), ROUNDS)
    trees = {flow: tree for share, tree in zip(shares, routed, strict=True) for flow in share.flows}
    return Placed(template, elements, trees)


def _fitted(machine: Machine, template: Template, elements: list[int]) -> Template:
    """Return a template with as many slots as fit; E517 where one of each does not fit."""
    fitting = Fitting(template, [machine.kinds[kind].data_bytes for kind in template.kinds])
    fitting.shrink()
    for seat, room in enumerate(fitting.room):
        if room < 0:
            layers = sorted({tile.layer for tile in template.tiles if tile.element == seat})
            names = ", ".join(template.network.layers[layer].name for layer in layers[:4])
            size = machine.kinds[template.kinds[seat]].data_bytes
            raise fail(
                "E517",
                f"the tiles on element {elements[seat]} ({machine.element_name(elements[seat])})"
                f" must fit its {size:,} bytes of data memory, but need {size - room:,},"
                f" {-room:,} too many: {names}",
                help="put some of them on another element, or split their layers further",
            )
    return replace(template, slots=fitting.slots)
