"""Map a network onto a machine."""

from __future__ import annotations

from dataclasses import replace

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.assembly import Placed, around_dead, assembled
from mizzen.mesh.mapping.candidates import Candidate, CandidateSearch, Tree, lost_chips
from mizzen.mesh.mapping.chip_net import ChipNet, chip_net
from mizzen.mesh.mapping.chip_trees import demands_of
from mizzen.mesh.mapping.depths import Buffering
from mizzen.mesh.mapping.fitting import fitted
from mizzen.mesh.mapping.mapping import Mapping
from mizzen.mesh.mapping.misfit import does_not_fit
from mizzen.mesh.mapping.options import MappingOptions, Placement, Progress, Solver
from mizzen.mesh.mapping.plain import anywhere, in_plain_parts
from mizzen.mesh.mapping.routes import snake
from mizzen.mesh.mapping.seating import Seating, moved_to, shared_chip
from mizzen.mesh.network.network import Network

PATIENCE = 4
"""Ways that are tried although none of them is better."""


def map_network(
    network: Network,
    machine: Machine,
    options: MappingOptions | None = None,
    progress: Progress | None = None,
) -> Mapping:
    """Return the mapping of most images a second that is found; the same for the same options.

    E510 where the network does not fit, with the bytes, the layer and what would make it fit.
    """
    options = options or MappingOptions()
    tell = progress or _silent
    net = chip_net(machine)
    best = _best(network, machine, net, options, tell)
    if options.placement in (Placement.HILBERT, Placement.RANDOM):
        best = in_plain_parts(machine, net, best, options)
    tell(f"placing {best.way.working} replicas of {len(best.template.tiles)} tiles")
    return assembled(machine, net, _placed(machine, net, best, options), options.seed)


def _silent(_: str) -> None:
    pass


def _best(
    network: Network, machine: Machine, net: ChipNet, options: MappingOptions, tell: Progress
) -> Candidate:
    """Return the best candidate; ways whose bound is below what was found are not tried."""
    search = CandidateSearch(network, machine, net, options)
    best: Candidate | None = None
    fruitless = 0
    for bound, way in search.bounds():
        if fruitless == PATIENCE or bound <= (best.images_per_s if best else 0.0):
            break
        fruitless += 1
        tell(f"{way.working} replicas: at most {bound:.0f} images/s")
        for candidate in search.candidates(way):
            if options.solver is Solver.CP_SAT:
                tell(f"CP-SAT: at most {candidate.gap:.2%} above the least traffic")
            if best is None or candidate.images_per_s > best.images_per_s:
                best, fruitless = candidate, 0
    if best is None:
        raise does_not_fit(network, machine, search.whole[Buffering.SINGLE])
    return search.improved(best) if options.placement is Placement.SEARCHED else best


def _placed(
    machine: Machine, net: ChipNet, best: Candidate, options: MappingOptions
) -> list[Placed]:
    lost = lost_chips(machine)
    every = range(best.way.replicas)
    whole = [replica for replica in every if not lost & set(_home(net, best, replica))]
    homes = [_home(net, best, replica) for replica in whole]
    trees = [_moved_trees(net, best, replica) for replica in whole]
    demands = [demands_of(best.shares, chips) for chips in homes]
    trees = around_dead(net, demands, trees)
    best = replace(best, chips=homes[0], trees=trees[0])
    elements = _elements(machine, net, best, homes, options)
    by_flow: list[dict[int, Tree]] = [{} for _ in homes]
    for tree_of_flow, of_replica in zip(by_flow, trees, strict=True):
        for share, tree in zip(best.shares, of_replica, strict=True):
            tree_of_flow.update(dict.fromkeys(share.flows, tree))
    capacities = [machine.kinds[kind].data_bytes for kind in best.template.kinds]
    slots = fitted(best.template, capacities, best.parts)
    template = replace(best.template, slots=slots)
    return [Placed(template, own, each) for own, each in zip(elements, by_flow, strict=True)]


def _elements(
    machine: Machine,
    net: ChipNet,
    best: Candidate,
    homes: list[list[int]],
    options: MappingOptions,
) -> list[list[int]]:
    """Return the elements of each replica's seats."""
    if best.way.sharing > 1:
        of_chips = snake(machine)
        return [
            shared_chip(of_chips[chips[0]], best, place % best.way.sharing)
            for place, chips in enumerate(homes)
        ]
    seating = Seating(machine, net, best)
    match options.placement:
        case Placement.SEARCHED | Placement.METIS:
            first = seating.searched(options.refinements)
        case Placement.HILBERT:
            first = seating.in_order()
        case Placement.RANDOM:
            first = anywhere(seating.in_order(), best.parts, options.seed)
    return [moved_to(machine, first, best.chips, chips, best.parts) for chips in homes]


def _shift(net: ChipNet, best: Candidate, replica: int) -> tuple[int, int]:
    assert best.block is not None
    across = net.machine.chip_columns // best.block.columns
    return replica % across * best.block.columns, replica // across * best.block.rows


def _home(net: ChipNet, best: Candidate, replica: int) -> list[int]:
    """Return the chips of a replica's parts."""
    if best.block is None:
        return [replica // best.way.sharing]
    columns, lines = _shift(net, best, replica)
    return [net.moved(chip, columns, lines) for chip in best.chips]


def _moved_trees(net: ChipNet, best: Candidate, replica: int) -> list[Tree]:
    if best.block is None:
        return []
    columns, lines = _shift(net, best, replica)
    return [
        tuple((net.moved(chip, columns, lines), side) for chip, side in tree) for tree in best.trees
    ]
