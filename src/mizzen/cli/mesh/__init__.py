"""Networks on many processing elements: mapped, checked, executed, shown.

`map` makes a program of a network and a machine; the others take the program,
whoever made it.
"""

from mizzen.cli.mesh import check, export, inspect, map, report, run

SUMMARY = "networks on many processing elements"
VERBS = (map, check, run, report, inspect, export)
