"""The backdoor: what waits comes once, where its number is right."""

from __future__ import annotations

import numpy as np

from mizzen.targets.ethos_n.reference import evaluate

from .backdoor import Array, Backdoor, Infer
from .patterns.graphs import Net, whole


def network(backdoor: Backdoor) -> tuple[Net, Infer]:
    net = Net()
    x = net.input(1, 4, 4, 16)
    net.outputs(net.clamp(x, -50, 60), net.clamp(x, -20, 20))
    generated = whole(net).network
    return net, backdoor.before(lambda arrays: evaluate(generated, arrays), 2)


def same(some: object, others: list[Array]) -> bool:
    return isinstance(some, (list, tuple)) and all(map(np.array_equal, some, others))


def test_what_waits_comes_once(backdoor: Backdoor) -> None:
    net, infer = network(backdoor)
    inputs = net.inputs()
    computed = [np.clip(inputs[0], -50, 60), np.clip(inputs[0], -20, 20)]
    waiting = [np.zeros((1, 4, 4, 16), np.int8), np.ones((1, 4, 4, 16), np.int8)]
    assert same(infer(inputs), computed)
    backdoor.inference_result(*waiting)
    waiting[0][:] = 9  # copies wait
    assert same(infer(inputs), [np.zeros_like(waiting[0]), waiting[1]])
    assert same(infer(inputs), computed)


def test_a_wrong_number_of_results_is_dropped(backdoor: Backdoor) -> None:
    net, infer = network(backdoor)
    inputs = net.inputs()
    computed = [np.clip(inputs[0], -50, 60), np.clip(inputs[0], -20, 20)]
    backdoor.inference_result(computed[0])
    assert same(infer(inputs), computed)
    assert same(infer(inputs), computed)
