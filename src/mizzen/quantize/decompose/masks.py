"""Masks of scores, whose minus infinity, or number as far below, no scale has a place for.

Found backwards from the softmax that the scores go into; elsewhere such numbers stay what they are,
and calibration refuses infinities. However a network hides scores, the mask is added to them last:
what is hidden then is the lowest integer of that sum, and takes no steps from what is visible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from mizzen.frontends.torch.operators import Role, row_of
from mizzen.frontends.torch.operators.row import Range
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of
from mizzen.quantize.nodes import (
    HIDDEN,
    HIDDEN_BESIDE,
    HIDES,
    KNOWN_RANGE,
    MADE_MASK,
    MASK,
    MASKED,
    row_name,
)

HIDING = Range(-MASKED / 256, 127, -MASKED / (1 << 15))
"""The range of a mask that is computed: nothing, or what hides."""

FURTHER = 8.0
"""How many times as far below a score is hidden that something else is added to later."""


def bound_masks(rewriter: Rewriter, scores: object, place: Node) -> bool:
    """Add last what hides scores, and say whether something does.

    The rewriter inserts before `place` again afterwards.
    """
    hides = _visit(rewriter, scores, 1.0, set())
    rewriter.at(place)
    return hides


def _visit(rewriter: Rewriter, node: object, times: float, seen: set[Node]) -> bool:
    """Rewrite the masked sums among what a value of scores is made of."""
    if not isinstance(node, Node) or node in seen:
        return False
    seen.add(node)
    if row_name(node) == "maximum":
        _drop_least(rewriter, node)
    if _moves(node):
        return _visit_all(rewriter, node.all_input_nodes, times, seen)
    rewriter.at(node)
    terms = Terms(rewriter, node)
    terms.collect(node)
    terms.choose_inputs()
    sums = [node]
    if terms.masks and terms.visible:
        sums = terms.replace(node)
    inner = [each for each in terms.visible if each is not node]
    hides = _visit_all(rewriter, inner, times * FURTHER, seen)
    for each in sums if hides else sums[len(sums) - len(terms.masks) :]:
        each.meta[HIDES] = times
    return hides or bool(terms.masks)


def _visit_all(rewriter: Rewriter, nodes: list[Node], times: float, seen: set[Node]) -> bool:
    """Visit every one of several values, and say whether something in one hides."""
    return sum(_visit(rewriter, node, times, seen) for node in nodes) > 0


def _drop_least(rewriter: Rewriter, node: Node) -> None:
    """Leave out a maximum with a constant that is less than every score."""
    for one, other in (node.args, node.args[::-1]):
        constant = rewriter.value(one)
        if constant is not None and bool((constant <= HIDDEN).all()) and isinstance(other, Node):
            if shape_of(other) == shape_of(node):
                node.replace_all_uses_with(other)
            return


@dataclass
class Terms:
    """What a value is the sum of: what is visible, and masks."""

    rewriter: Rewriter
    root: Node
    visible: list[Node] = field(default_factory=list[Node])
    masks: list[Node] = field(default_factory=list[Node])

    def collect(self, node: Node) -> None:
        """Take a sum apart whose parts nothing else reads, but for masks."""
        constant = self.rewriter.value(node)
        if constant is not None and constant.is_floating_point():
            self._split(node, constant)
        elif node is not self.root and self._is_mask(node):
            self.masks.append(self._made(node))
        elif node is not self.root and len(node.users) > 1 and not self._only_hides(node):
            self.visible.append(node)
        else:
            self._collect_computed(node)

    def _is_mask(self, node: Node) -> bool:
        source = _source(node)
        return MADE_MASK in source.meta or self._maker(source) is not None

    def _only_hides(self, node: Node) -> bool:
        """Whether a value is a sum of masks, which costs nothing to take apart again."""
        if row_name(node) == "add" and all(isinstance(each, Node) for each in node.args):
            return all(self._only_hides(each) for each in node.all_input_nodes)
        known = self.rewriter.value(node) is not None or _origin(node) is not None
        return known or self._is_mask(node)

    def _made(self, node: Node) -> Node:
        """Let a mask be made once for everybody who reads it. Return what stands for `node`."""
        source = _source(node)
        maker = self._maker(source)
        if maker is None:
            return node
        self.rewriter.at(source)
        made = maker()
        made.meta[MADE_MASK] = True
        source.replace_all_uses_with(made)
        self.rewriter.module.graph.erase_node(source)
        self.rewriter.at(self.root)
        return made if node is source else node

    def _maker(self, node: Node) -> Callable[[], Node] | None:
        """Return a maker of a mask from a choice between nothing and a number that hides."""
        match row_name(node), node.args:
            case "mul", [Node() as truths, factor] if _hides(factor):
                return lambda: self._of_numbers(truths)
            case "masked_fill", [value, Node() as hidden, number] if self._chooses(number, value):
                return lambda: self._of_truths(hidden)
            case "where", [Node() as shown, value, number] if self._chooses(number, value):
                return lambda: self._of_truths(self._not(shown))
            case "where", [Node() as hidden, number, value] if self._chooses(number, value):
                return lambda: self._of_truths(hidden)
            case _:
                return None

    def _chooses(self, number: object, value: object) -> bool:
        """Whether a choice is between a number that hides and nothing."""
        constant = self.rewriter.value(value)
        nothing = value == 0 if constant is None else not bool(constant.any())
        return self._hides(number) and nothing

    def _collect_computed(self, node: Node) -> None:
        name, operands = row_name(node), node.args
        match name, operands:
            case "add", [Node() as one, Node() as other]:
                self.collect(one)
                self.collect(other)
            case "sub", [Node() as one, Node() as other] if self._hides_by(-1.0, other):
                self.collect(one)
                self._split(other, -self._constant(other))
            case (("mul" | "div"), [Node() as one, factor]) if self._is_positive(factor):
                self._scale(node, one, factor)
            case "masked_fill", [Node() as value, Node() as hidden, number] if self._hides(number):
                self._fill(node, value, hidden)
            case "where", [Node() as shown, value, number] if self._hides(number):
                self._fill(node, value, self._not(shown))
            case "where", [Node() as hidden, number, value] if self._hides(number):
                self._fill(node, value, hidden)
            case _:
                self.visible.append(node)

    def choose_inputs(self) -> None:
        """Take inputs of the program for masks, where computed numbers, or others, are added."""
        inputs = {node: origin for node in self.visible if (origin := _origin(node)) is not None}
        computed = [node for node in self.visible if node not in inputs and node.op != "get_attr"]
        scores = [] if computed else list(inputs)[:1]
        for node, origin in inputs.items():
            if len(inputs) + len(computed) > 1:
                origin.meta[MASK] = True
                if node not in scores:
                    self.visible.remove(node)
                    self.masks.append(node)

    def replace(self, node: Node) -> list[Node]:
        """Add the visible terms first, then the masks. Return the sums, those of masks last."""
        value, *others = [*self.visible, *self.masks]
        sums: list[Node] = []
        for other in others:
            value = self.rewriter.call(aten.add.Tensor, value, other)
            sums.append(value)
        node.replace_all_uses_with(value)
        self.rewriter.module.graph.erase_node(node)
        return sums

    def _split(self, node: Node, value: torch.Tensor) -> None:
        """Separate what hides in a constant from its other numbers, which keep their steps."""
        hidden = _hidden_in(value)
        if not bool(hidden.any()):
            self.visible.append(node)
            return
        self.masks.append(self._constant_mask(hidden))
        rest = torch.where(hidden, 0.0, value)
        if bool(rest.any()):
            self.visible.append(self.rewriter.constant(rest, "bias"))

    def _constant_mask(self, hidden: torch.Tensor) -> Node:
        return self.rewriter.constant(torch.where(hidden, MASKED, 0.0), "mask")

    def _scale(self, node: Node, value: Node, factor: Any) -> None:
        """Scale what is visible only: a mask hides as well without."""
        inner = Terms(self.rewriter, self.root)
        inner.collect(value)
        if not inner.masks:
            self.visible.append(node)
            return
        target: Any = node.target
        self.visible += [self.rewriter.call(target, each, factor) for each in inner.visible]
        self.masks += inner.masks

    def _fill(self, node: Node, value: object, hidden: Node) -> None:
        """Split a choice between a value and a number that hides into the value and a mask."""
        places = self.rewriter.value(hidden)
        self.masks.append(
            self._of_truths(hidden) if places is None else self._constant_mask(places)
        )
        if not isinstance(value, Node):
            if value:
                constant = torch.full(shape_of(node), float(value))  # pyright: ignore[reportArgumentType] - a number
                self.visible.append(self.rewriter.constant(constant, "bias"))
            return
        constant = self.rewriter.value(value)
        if constant is None or bool(constant.any()):
            if shape_of(value) != shape_of(node):
                value = self.rewriter.call(aten.expand.default, value, list(shape_of(node)))
            self.collect(value)

    def _of_truths(self, hidden: Node) -> Node:
        """Return a mask that hides where a condition holds."""
        zeros = self.rewriter.constant(torch.zeros(shape_of(hidden)), "mask")
        mask = self.rewriter.call(aten.masked_fill.Scalar, zeros, hidden, MASKED)
        mask.meta[KNOWN_RANGE] = HIDING
        return mask

    def _of_numbers(self, truths: Node) -> Node:
        """Return a mask that hides where a number is 1 and not 0, whatever its rounding."""
        double = self.rewriter.call(aten.mul.Tensor, truths, 2 * MASKED)
        centred = self.rewriter.call(aten.add.Tensor, double, -MASKED)
        return self.rewriter.call(aten.clamp.default, centred, MASKED, 0.0)

    def _not(self, truths: Node) -> Node:
        places = self.rewriter.value(truths)
        if places is not None:
            return self.rewriter.constant(~places, "mask")
        return self.rewriter.call(aten.logical_not.default, truths)

    def _constant(self, value: Node) -> torch.Tensor:
        constant = self.rewriter.value(value)
        assert constant is not None
        return constant

    def _hides(self, value: object) -> bool:
        """Whether a number, or a constant everywhere, hides what it is put in place of."""
        constant = self.rewriter.value(value)
        return _hides(value) or (constant is not None and bool((constant <= HIDDEN).all()))

    def _hides_by(self, sign: float, value: Node) -> bool:
        constant = self.rewriter.value(value)
        return constant is not None and bool(_hidden_in(sign * constant).any())

    def _is_positive(self, value: object) -> bool:
        constant = self.rewriter.value(value)
        if constant is not None:
            return bool((constant > 0).all())
        return isinstance(value, (int, float)) and value > 0


def _hidden_in(value: torch.Tensor) -> torch.Tensor:
    """Return where a constant that is added to scores hides them."""
    if not value.is_floating_point():
        return torch.zeros_like(value, dtype=torch.bool)
    low, high = HIDDEN_BESIDE
    beside = value.numel() > 0 and bool(value.max() >= high)
    return value <= (low if beside else HIDDEN)


def _hides(value: object) -> bool:
    return isinstance(value, (int, float)) and value <= HIDDEN


def _moves(node: Node) -> bool:
    """Whether a node only moves elements, of one value or several."""
    entry = row_of(node)
    return entry is not None and entry.role is Role.SHARED and entry.name != "where"


def _origin(node: object) -> Node | None:
    """Return the input of the program whose elements a node only moves."""
    source = _source(node) if isinstance(node, Node) else None
    return source if source is not None and source.op == "placeholder" else None


def _source(node: Node) -> Node:
    """Return the value whose elements a node only moves."""
    while _moves(node) and len(node.all_input_nodes) == 1:
        node = node.all_input_nodes[0]
    return node
