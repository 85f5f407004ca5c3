"""Executes Ethos-U command streams bit-exactly on the host."""

from mizzen.targets.ethos_u.sim.machine import Outcome, Simulator

__all__ = ["Outcome", "Simulator"]
