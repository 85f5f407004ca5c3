"""Hazards of a command stream: what its waits and block dependencies leave unordered."""

from mizzen.targets.ethos_u.hazards.checker import HazardReport, find_hazards

__all__ = ["HazardReport", "find_hazards"]
