"""Networks on many processing elements: mapped, checked, executed, shown.

`map` makes a program from a network and a machine: what each element stores,
computes, receives and sends. The other verbs take that program, also one of
another mapper: they check, execute, show and export it.
"""

from mizzen.cli.mesh import check, export, inspect, map, report, run

SUMMARY = "networks on many processing elements"
VERBS = (map, check, run, report, inspect, export)
