"""How each operation of an artifact's streams is done, read out of the stream.

A stream says all that was decided, whatever made it: blocks, orders, layouts, places, waits. What
else could have been decided is computed anew, by what our own schedules are made with, for each
operation by itself; what a schedule gave up there for its neighbours, no stream says.
"""

from mizzen.analysis.decisions.reading import decisions

__all__ = ["decisions"]
