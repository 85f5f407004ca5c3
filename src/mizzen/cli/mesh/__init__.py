"""Networks on many processing elements: mapped, checked, executed, shown.

`map` makes a program from a network and a machine: what each element stores,
computes, receives and sends. The other verbs take that program.
"""

from mizzen.cli.mesh import check, export, inspect, map, report, run

SUMMARY = "networks on many processing elements"
VERBS = (map, check, run, report, inspect, export)
