"""Networks on a mesh of many processing elements: mapped, checked, executed, shown, exported.

A group of verbs, one file each, like those of the command line itself. `map` makes a program of a
network and a machine; the others take the program, whoever made it.
"""

from mizzen.cli.mesh import check, export, inspect, map, report, run

SUMMARY = "networks on many processing elements"
VERBS = (map, check, run, report, inspect, export)
