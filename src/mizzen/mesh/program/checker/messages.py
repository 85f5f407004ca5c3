"""Whether messages arrive: who sends, who receives, over which links, and what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mizzen.mesh.network.boxes import elements_of
from mizzen.mesh.program.checker.findings import Finding, Rule, shown
from mizzen.mesh.program.checker.view import Receiving, Sending, View
from mizzen.mesh.program.program import Receive, Region, Route, Send


def message_findings(view: View) -> Iterator[Finding]:
    """Return messages that are not sent once, or not received as they are sent."""
    for message, route in enumerate(view.program.routes):
        sends = view.sends.get(message, [])
        if len(sends) != 1 or sends[0].element.element != route.source:
            name = view.program.machine.element_name(route.source)
            must = f"it must be sent once, by {name}"
            senders = ", ".join(view.place(each.element, each.place) for each in sends[:3])
            came = f"not by {senders}" if sends else "and is not sent"
            yield Finding(Rule.MESSAGES, f"message {message}", must, came)
        else:
            yield from _received(view, route, sends[0])


def _received(view: View, route: Route, sending: Sending) -> Iterator[Finding]:
    message = sending.send.message
    place = f"message {message}"
    receives = view.receives.get(message, [])
    elements = {each.element.element for each in receives}
    for wrong, must in (
        (set(route.targets) - elements, "every target must receive it"),
        (elements - set(route.targets), "only targets must receive it"),
    ):
        if wrong:
            name = view.program.machine.element_name(min(wrong))
            does = "does not" if must.startswith("every") else "does"
            yield Finding(Rule.MESSAGES, place, must, f"{name} {does}")
    region = sending.element.regions[sending.send.region]
    need = elements_of(sending.send.box) * view.item_bytes(region)
    if route.size_bytes != need:
        must = f"it must have the {need} bytes of {shown(sending.send.box)}"
        yield Finding(Rule.MESSAGES, place, must, f"not {route.size_bytes}")
    for each in receives:
        yield from _same(view, sending, region, each)


def _same(view: View, sending: Sending, region: Region, each: Receiving) -> Iterator[Finding]:
    send: Send = sending.send
    receive: Receive = each.receive
    target = each.element.regions[receive.region]
    place = view.place(each.element, each.place)
    if (receive.box, target.tensor) != (send.box, region.tensor):
        must = f"message {send.message} must be {shown(send.box)} of tensor {region.tensor}"
        came = f"not {shown(receive.box)} of tensor {target.tensor}"
        yield Finding(Rule.MESSAGES, place, must, came)
    if each.element.replica != sending.element.replica:
        must = f"message {send.message} must be of an image of replica {each.element.replica}"
        yield Finding(Rule.MESSAGES, place, must, f"not of replica {sending.element.replica}")


def route_findings(view: View) -> Iterator[Finding]:
    """Return routes that are no trees of live links from their source to their targets."""
    machine = view.program.machine
    router_of: list[int] = machine.element_router.tolist()
    sources: list[int] = machine.link_source.tolist()
    targets: list[int] = machine.link_target.tolist()
    dead: Any = machine.link_dead.tolist()
    for message, route in enumerate(view.program.routes):
        place = f"message {message}"
        if not route.targets or len(set(route.targets)) != len(route.targets):
            must = "its targets must be elements, each once"
            yield Finding(Rule.ROUTES, place, must, f"not {list(route.targets)}")
        if route.source in route.targets:
            must = "its targets must not be its source"
            yield Finding(Rule.ROUTES, place, must, machine.element_name(route.source))
        for link in route.links:
            if dead[link]:
                must = "its links must be alive"
                came = f"link {link} from {machine.router_name(sources[link])} is dead"
                yield Finding(Rule.ROUTES, place, must, came)
        ends = [(sources[link], targets[link]) for link in route.links]
        reached = _reached(router_of[route.source], ends)
        if reached is None:
            must = "its links must be a tree from its source's router"
            yield Finding(Rule.ROUTES, place, must, f"not links {_few(route.links)}")
            continue
        for element in route.targets:
            if router_of[element] not in reached:
                must = "its links must lead to every target"
                yield Finding(
                    Rule.ROUTES, place, must, f"and do not to {machine.element_name(element)}"
                )


def _few(links: Sequence[int]) -> str:
    return ", ".join(map(str, links[:8])) + (", ..." if len(links) > 8 else "")


def _reached(start: int, ends: list[tuple[int, int]]) -> set[int] | None:
    """Return the routers of a tree; None if the links are no tree from `start`."""
    reached = {start}
    rest = ends
    while rest:
        later: list[tuple[int, int]] = []
        for source, target in rest:
            if source not in reached:
                later.append((source, target))
            elif target in reached:
                return None
            else:
                reached.add(target)
        if len(later) == len(rest):
            return None
        rest = later
    return reached
