"""CONV2D of single elements with computed weights on U85: a product of pixels and channels.

A bias is added to its sums, in 32 bits.

Ref: registers of Ethos-U85, OP_CONV with weights from IFM2.
"""

from __future__ import annotations

from mizzen.graph import DType
from mizzen.ops.tensor import Conv2d
from mizzen.targets.ethos_u.generator.lower.carrying import INT32
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.elementwise import Plan, combine
from mizzen.targets.ethos_u.generator.lower.finish import Finish, number, plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule_u85
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, pixels
from mizzen.targets.ethos_u.generator.operations import MatrixProduct
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode


@rule_u85(Conv2d)
def pointwise(site: Site) -> Node:
    """CONV2D of 1x1 whose weights are computed, and the scale, clip and table after it."""
    operation = site.operation
    assert isinstance(operation, Conv2d)
    weights, bias = operation.weight, operation.bias
    need(weights.constant is None, "its weights are constants")
    need(weights.shape[1:3] == (1, 1) and not any(operation.pad), "its weights are computed")
    need(operation.input.dtype is weights.dtype is DType.INT8, "its weights are computed")
    finish = site.finish(scales=True)
    need(len(finish.multipliers) == 1, "its channels have scales of their own")
    is_plain = bias.constant is not None and not bias.constant.any()
    zeros = number(operation.input_zp), number(operation.weight_zp)
    channels = weights.shape[0]

    def multiply(emitter: Emitter, own: Finish, target: View) -> None:
        view = _pixels(emitter, site, emitter.read(operation.input))
        for axis in (1, 2):
            view = view.stepped(axis, operation.stride[axis - 1], target.shape[axis])
        columns = emitter.read(weights).reshaped((1, channels, weights.shape[3]))
        assert columns is not None
        for image, made in zip(images(view), images(target), strict=True):
            emitter.operations.append(
                MatrixProduct(
                    site.origin,
                    emitter.map(image, zeros[0]),
                    emitter.map(columns, zeros[1]),
                    emitter.map(made, own.zero_point),
                    own.scale,
                    own.activation,
                    rounding=own.rounding,
                )
            )

    def write(emitter: Emitter, target: View) -> None:
        if is_plain:
            multiply(emitter, finish, target)
            return
        sums = emitter.tensor("sums", target.shape, INT32)
        multiply(emitter, plain(DType.INT32), sums)
        added = emitter.read(bias).reshaped((1, 1, 1, bias.type.elements))
        assert added is not None
        scales = (None, None)
        plan = Plan(
            ElementwiseMode.ADD, (), finish, finish.scale, finish.rounding, operand_scales=scales
        )
        combine(emitter, site, plan, (sums, added), target)

    reads = [value for value in (operation.input, weights, bias) if value.constant is None]
    return site.node(reads, write)


def _pixels(emitter: Emitter, site: Site, view: View) -> View:
    return view if pixels(view) else emitter.copied(view, site.origin)
