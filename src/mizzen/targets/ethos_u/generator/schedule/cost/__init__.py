"""What operations cost by two models, of all their blocks at once.

`formula` is Vela's formula, `events` is near our own simulation of streams: rates, array, output
and traffic of a block are the same, and only what lies between operations is taken from their
order. Both take `Traffic`: where maps and constants lie. The judge of streams has both models a
second time, written apart.
"""

from mizzen.targets.ethos_u.generator.schedule.cost.events import Events, events
from mizzen.targets.ethos_u.generator.schedule.cost.formula import Formula, formula
from mizzen.targets.ethos_u.generator.schedule.cost.traffic import Constants, Stored, Traffic

__all__ = ["Constants", "Events", "Formula", "Stored", "Traffic", "events", "formula"]
