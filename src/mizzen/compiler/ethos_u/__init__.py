"""The backend of Ethos-U: from networks of any front-end to NPU operators, and their files.

All code is our own. A TFLite network (`tflite`), a TOSA network (`tosa`) and a region
of a PyTorch program (`regions`) go one way: lowered to a graph, placed by what rules take, each
unit scheduled by a search (`search`) and proved (`proof`). Where all units of a network share
memory, one plan places what they hand on (`arena`). Where a user asks for it, Arm's Vela makes the
code of a file (`vela`), and the better of both is taken (`makers`).

Nothing here knows a rule, a block or a command: what the NPU computes of a graph is the business of
`mizzen.targets.ethos_u.generator`, and what an artifact executes is `mizzen.artifact`'s.
"""
