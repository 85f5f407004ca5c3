"""Networks on many processing elements: mapped, checked, executed, shown.

`map` makes a program of a network and a machine: what each element has in its
memory, computes, receives and sends. The others take the program, whatever made
it: they know no mapper.
"""

from mizzen.cli.mesh import check, export, inspect, map, report, run

SUMMARY = "networks on many processing elements"
VERBS = (map, check, run, report, inspect, export)
