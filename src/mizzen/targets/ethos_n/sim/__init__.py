"""Executes Ethos-N command streams on the host, exactly by the documented formulas.

A stream is planned once: every command is checked against its buffers, its banks and what commands
before it left there, and prepared; the plan then runs any batch. What Arm does not publish is taken
one way, said in a note (`inferred`) and bounded, never hidden. Passes run one after the other, as
the firmware runs them.

It must be able to disagree with the compiler, so it must not know anything that lowers, schedules
or emits: it reads commands, capabilities and bytes, and has its own weight decoder, its own
arithmetic and its own idea of where a tensor lies.
"""

from mizzen.targets.ethos_n.sim.machine import Outcome, Simulator

__all__ = ["Outcome", "Simulator"]
