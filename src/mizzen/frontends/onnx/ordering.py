"""The order in which nodes of a file can be computed, and which of them something needs."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Iterator, Sequence

from mizzen.diagnostics import MizzenError, Origin
from mizzen.frontends.onnx.tensors import wrong
from mizzen.frontends.onnx.wire import Message


def origin_of(file: str, index: int, message: Message) -> Origin:
    """Say where a node of a file is."""
    return Origin(
        model=file, operator=index, kind=message.get("op_type", ""), name=_name_of(message)
    )


def _name_of(message: Message) -> str:
    outputs = [name for name in message.get("output", ()) if name]
    return message.get("name") or (outputs[0] if outputs else "")


def needed_by(message: Message) -> set[str]:
    """Collect the tensors that a node takes, those that graphs within it take included."""
    names = {name for name in message.get("input", ()) if name}
    for graph in _graphs(message):
        names |= _captured(graph)
    return names


def _graphs(message: Message) -> Iterator[Message]:
    for attribute in message.get("attribute", ()):
        if "g" in attribute:
            yield attribute["g"]
        yield from attribute.get("graphs", ())


def _captured(graph: Message) -> set[str]:
    """Collect the names that a graph takes from outside."""
    own = {entry.get("name", "") for entry in graph.get("input", ())}
    own |= {entry.get("name", "") for entry in graph.get("initializer", ())}
    taken: set[str] = {entry.get("name", "") for entry in graph.get("output", ())}
    for node in graph.get("node", ()):
        taken |= needed_by(node)
        own |= set(node.get("output", ()))
    return taken - own


def ordered(
    messages: Sequence[Message], available: Container[str], wanted: Collection[str], file: str
) -> list[tuple[int, Message]]:
    """Put nodes in an order in which each has its inputs, near to the file's; with their places.

    Nodes that none of the `wanted` tensors needs are left out. Raises E190 for a tensor that two
    nodes make, one that is missing, and nodes that need one another in a circle.
    """
    makers = _makers(messages, available, file)
    needs = [needed_by(message) for message in messages]
    used = _used(needs, makers, wanted)
    waiting: dict[int, int] = {}
    users: dict[int, list[int]] = {}
    for place in sorted(used):
        behind = {makers[name] for name in needs[place] if name in makers}
        missing = sorted(
            name for name in needs[place] if name not in makers and name not in available
        )
        if missing:
            raise _missing(missing[0], origin_of(file, place, messages[place]))
        waiting[place] = len(behind)
        for maker in behind:
            users.setdefault(maker, []).append(place)
    return [(place, messages[place]) for place in _sorted(waiting, users, messages, file)]


def _sorted(
    waiting: dict[int, int], users: dict[int, list[int]], messages: Sequence[Message], file: str
) -> Iterator[int]:
    ready = [place for place, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    done = 0
    while ready:
        place = heapq.heappop(ready)
        done += 1
        yield place
        for user in users.get(place, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, user)
    if done < len(waiting):
        place = min(place for place, count in waiting.items() if count)
        raise wrong(
            origin_of(file, place, messages[place]),
            "nodes must need each other in no circle, and this one is in or after one",
        )


def _makers(messages: Sequence[Message], known: Container[str], file: str) -> dict[str, int]:
    makers: dict[str, int] = {}
    for place, message in enumerate(messages):
        for name in message.get("output", ()):
            if name in makers or name in known:
                raise wrong(
                    origin_of(file, place, message),
                    f'each tensor must be made once, and "{name}" is made twice',
                )
            if name:
                makers[name] = place
    return makers


def _used(needs: list[set[str]], makers: dict[str, int], wanted: Collection[str]) -> set[int]:
    used: set[int] = set()
    pending = [makers[name] for name in wanted if name in makers]
    while pending:
        place = pending.pop()
        if place not in used:
            used.add(place)
            pending += [makers[name] for name in needs[place] if name in makers]
    return used


def _missing(name: str, origin: Origin) -> MizzenError:
    return wrong(origin, f'every input must be a tensor of the network, and "{name}" is none')
