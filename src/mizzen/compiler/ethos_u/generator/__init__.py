"""Code for Ethos-U: Vela's, and in its place Mizzen's own where that is asked for or better.

Vela compiles a network first: it decides what is on the NPU, and its code is what ours is held
against. Then each NPU operator is generated anew, from the operations that Vela's words lift to,
laid out, scheduled and emitted by `mizzen.targets.ethos_u.generator`. What comes is judged here, by
the timing model, by Vela's formula, by the checker of hazards, and by the bytes it needs; whoever
proves a compilation executes the words that are left, whoever made them. Where that is certain to
come, and only there, code that our own rules made may give other numbers than Vela's.

It must not know how a network was placed, nor how operations are scheduled.
"""

from mizzen.compiler.ethos_u.generator.generate import generate, is_asked
from mizzen.compiler.ethos_u.generator.written import Written, has_corrected_code, has_own_code

__all__ = ["Written", "generate", "has_corrected_code", "has_own_code", "is_asked"]
