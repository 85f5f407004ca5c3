"""Taking compound operators apart, before calibration, where integers need ranges inside."""

from __future__ import annotations

from torch.fx import GraphModule

from mizzen.quantize.decompose import arithmetic, attention, normalization
from mizzen.quantize.decompose.folding import bound, fold
from mizzen.quantize.decompose.rewriting import Rewriter, Rule

RULES: dict[str, Rule] = attention.RULES | normalization.RULES | arithmetic.RULES


def decompose(module: GraphModule, *, is_qat: bool) -> None:
    """Rewrite a program in place so that every operator in it has one range for its result."""
    rewriter = Rewriter(module, is_qat)
    fold(rewriter)
    bound(rewriter)
    rewriter.apply(RULES)
    module.graph.eliminate_dead_code()
    module.recompile()
