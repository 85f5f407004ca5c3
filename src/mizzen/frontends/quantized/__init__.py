"""The arithmetic of quantised networks in whole numbers, which front-ends share.

A real tensor stands for integers with a scale and a zero point (`terms`); an operator is computed
on them, and rounded once where the model rounds (`scales`). Functions take values of the graph and
plain parameters, and add TOSA operations; a `Pending` result waits until the model says which
integers it is to become. What has no exact form is refused with the reason (`RefusedError`).

Nothing here knows a file format or whose operator it computes: a front-end reads those, and says
with `steps` how its quantiser rounds real numbers. Nor does it know a target, whose limits it is
given.
"""
