"""The integer meaning of a network, operation by operation: an oracle for whatever runs streams.

Arm publishes no emulator of the NPU. What its compiled streams compute is held to this instead: the
network's operations by the documented arithmetic, with the roundings that the hardware's units make
(`mce_arithmetic`, `ple_arithmetic`). Where Arm's compiler makes one rounding of two, `roundings`
says so.

It is computed from a network's operations alone; it knows no pass, no command and no layout, and
shares no code with what emits or executes them.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.reference.evaluation import evaluate, evaluate_apart

__all__ = ["evaluate", "evaluate_apart"]
