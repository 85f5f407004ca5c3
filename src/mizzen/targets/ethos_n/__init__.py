"""Ethos-N78: its compiler, its simulator, and what Arm's Support Library answers about it.

Arm's library is not maintained any more, so it is written again here: from its sources of release
23.02, the last whose command stream (3.1) is public from end to end, and held to its recorded
answers byte for byte. A network goes through `compile.py`: asked about (`legal`), divided into
finer work (`lower`), divided again into passes with places in SRAM (`schedule`), and written as
commands, encoded weights and buffers (`emit`, `weights`). `patterns` makes networks of tensor
graphs; `sim` executes streams, `reference` computes networks, and the two share nothing with the
compiler but the formats, since each has to be able to say that it is wrong.

It must not know of files and front-ends: what it takes is a graph or a `Network`, what it gives a
container.
"""
