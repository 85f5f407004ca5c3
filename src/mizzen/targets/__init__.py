"""What is known about NPUs: one package for each family, each in the same shape.

A family's package has its configurations, its commands as rows of a table, the rules that networks
must keep to, a simulator that executes command streams, and a compiler, or the way to one. Names
are those of the vendor's manuals. `families` is the table through which the rest of Mizzen, and
packages of others, reach a family by the name of an accelerator; `rules` is the engine of the
tables of rules.

A target knows no front-end and no artifact: it takes graphs or networks of its own and returns
streams, and what joins the two is `mizzen.compiler` and `mizzen.artifact`. Within a target the
simulator imports nothing that makes streams: it must be able to disagree.
"""
