"""The integer meaning of a network, operation by operation: an oracle for whatever runs streams.

It is computed from a network's operations and the documented arithmetic alone; it knows no pass,
no command and no layout, and shares no code with what emits or executes them.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.reference.evaluation import evaluate, evaluate_apart

__all__ = ["evaluate", "evaluate_apart"]
