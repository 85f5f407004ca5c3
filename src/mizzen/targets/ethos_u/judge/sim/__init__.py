"""Executes Ethos-U command streams bit-exactly on the host.

A stream is planned once: registers become `operations`, plain values that mean the same on every
architecture; every access is checked, every constant decoded, and each operation becomes a kernel
that NumPy runs for a whole batch. Running is then a list of calls: what a stream costs to
understand is not paid for each input.

Values come from decoded commands, never from words, and what an operation means was written from
Arm's manuals and from runs of TFLite Micro's kernels, not from a compiler. So it must not know
anything that lowers, schedules or emits, nor the hazard checker: an error in one of them has to
show as a difference. What no compiled network shows is a row of `inferred`.
"""

from mizzen.targets.ethos_u.judge.sim.machine import Outcome, Simulator

__all__ = ["Outcome", "Simulator"]
