"""How a sequence is done: blocks, layouts, addresses, and when its constants are fetched.

`plain` is a right schedule without search. On U85 the order of input channels and the microblock
follow from the operation, and are no choice; the format of weights is one. Costs are computed for
all legal blocks at once, as arrays; facts about rates are those of `timing`, whose simulation of
streams judges what comes out and knows nothing of what is here.

It must not know networks, command words, nor what judges streams.
"""

from mizzen.targets.ethos_u.generator.schedule.estimating import Estimator
from mizzen.targets.ethos_u.generator.schedule.plain import plain, plain_bytes
from mizzen.targets.ethos_u.generator.schedule.scheduling import Effort, Limits, schedule

__all__ = ["Effort", "Estimator", "Limits", "plain", "plain_bytes", "schedule"]
