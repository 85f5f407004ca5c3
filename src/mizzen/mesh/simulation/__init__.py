"""How long mapped networks take: analytic, by events over bursts, by flits.

The three answer the same question with rising detail and cost. The analytic estimate adds up what
every element, link and port has to do for an image of every replica, and finds what is busiest; the
event simulation runs the programs, with waiting and contention; the one over flits is the small
reference that both are held to. They read programs and machines only, never a mapper.
"""

from mizzen.mesh.simulation.analytic import Estimate, Load, Resource, estimate
from mizzen.mesh.simulation.bound import array_bound, host_bound
from mizzen.mesh.simulation.bursts import simulate
from mizzen.mesh.simulation.events import Activity, Simulated
from mizzen.mesh.simulation.flits import simulate_flits

__all__ = [
    "Activity",
    "Estimate",
    "Load",
    "Resource",
    "Simulated",
    "array_bound",
    "estimate",
    "host_bound",
    "simulate",
    "simulate_flits",
]
