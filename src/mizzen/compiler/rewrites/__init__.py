"""Exact rewrites of TFLite networks before they are compiled: other operators, the same integers.

What a code generator makes of a network depends on how its maps lie: few channels leave the MAC
array idle, narrow maps its width, padded channels are copied. A rewrite computes the same sums in
another form that lies better. Each is a module that states its conditions and why it is exact;
whether it pays, only compiling tells, so `mizzen tune` tries, and `--target-option rewrite=NAME`
repeats it.

A rewrite changes a `Draft`, whose operators say of which operator of the user's network they are a
part, so that reports go on in the user's names. It knows no NPU. Inputs and outputs keep their
names and shapes.
"""

from mizzen.compiler.rewrites.apply import Rewritten, rewritten
from mizzen.compiler.rewrites.candidates import candidates
from mizzen.compiler.rewrites.table import require_known

__all__ = ["Rewritten", "candidates", "require_known", "rewritten"]
