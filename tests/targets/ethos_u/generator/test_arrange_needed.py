"""Operations whose results nobody reads are left out, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.generator.arrange.needed import needed
from mizzen.targets.ethos_u.generator.operations import Kernel, Role, Sequence
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode

from .interpreter import is_same
from .sequences import Network


def branches() -> Sequence:
    """Two pools end in outputs; three behind one another end in nothing, one beside them too."""
    net = Network()
    x = net.tensor((4, 6, 16), Role.INPUT)
    first = net.pool(net.whole(x), PoolingMode.MAX, Kernel())
    lost = net.pool(net.whole(first), PoolingMode.MAX, Kernel())
    net.pool(net.whole(lost), PoolingMode.MAX, Kernel())
    net.pool(net.whole(x), PoolingMode.MAX, Kernel())
    ends = [net.pool(net.whole(row), PoolingMode.MAX, Kernel()) for row in (first, x)]
    for end in ends:
        net.tensors[end] = replace(net.tensors[end], role=Role.OUTPUT)
    return net.sequence((x,), tuple(ends))


def test_what_nobody_reads_is_left_out() -> None:
    whole = branches()
    found = needed(whole)
    assert [whole.operations.index(row) for row in found.operations] == [0, 4, 5]
    assert is_same(whole, found)
    assert needed(found) is found


def test_a_state_is_read_in_the_next_run() -> None:
    net = Network()
    x, state = net.tensor((4, 6, 16), Role.INPUT), net.tensor((4, 6, 16), Role.STATE)
    result = net.pool(net.whole(x), PoolingMode.MAX, Kernel())
    net.tensors[result] = replace(net.tensors[result], role=Role.OUTPUT)
    net.pool(net.whole(x), PoolingMode.MAX, Kernel())
    net.operations[-1] = replace(net.operations[-1], ofm=net.whole(state))
    whole = net.sequence((x, state), (result,))
    assert needed(whole) is whole
