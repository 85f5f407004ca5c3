"""Executes Ethos-N command streams on the host, exactly by the documented formulas."""

from mizzen.targets.ethos_n.sim.machine import Outcome, Simulator

__all__ = ["Outcome", "Simulator"]
