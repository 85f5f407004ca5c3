"""Whether the sums of tiles fit the accumulators of their elements, by the real weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from mizzen.mesh.network.ranges import Sums, greatest_sums, product_of
from mizzen.mesh.program.checker.findings import Finding, Rule
from mizzen.mesh.program.checker.view import View
from mizzen.mesh.program.program import Kernel

CORE_BITS = 32


def accumulator_findings(view: View) -> Iterator[Finding]:
    """Return layers with sums that may leave the range; none of networks without weights."""
    largest: dict[tuple[int, int], int] = {}

    @cache
    def of_layer(layer: int) -> Sums | None:
        chain = view.network.layers[layer].chain
        product = None if chain is None else product_of(chain)
        return None if product is None else greatest_sums(product)

    @cache
    def greatest(kernel: Kernel) -> int:
        sums = of_layer(kernel.layer)
        if sums is None:
            return 0
        start, stop = kernel.channels or (0, sums.shape[1])
        first, last = kernel.box[-1]
        return int(sums[first:last, start:stop].sum(axis=1).max(initial=0))

    for element, _, compute in view.computes():
        array = view.program.machine.kind_of(element.element).array
        if array is not None and array.accumulator_bits < CORE_BITS:
            key = compute.kernel.layer, array.accumulator_bits
            largest[key] = max(largest.get(key, 0), greatest(compute.kernel))
    for (layer, bits), value in sorted(largest.items()):
        limit = (1 << (bits - 1)) - 1
        if value > limit:
            must = f"sums must be at most {limit} in accumulators of {bits} bits"
            came = f"they can be {value}: cut its input channels in {-(-value // limit)} or more"
            yield Finding(Rule.ACCUMULATORS, view.network.layers[layer].name, must, came)
