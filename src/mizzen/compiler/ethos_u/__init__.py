"""The backend of Ethos-U: from networks of any front-end to NPU operators, and their files.

U55 and U65 have code of our own. A TFLite network (`tflite`), a TOSA network (`tosa`) and a region
of a PyTorch program (`regions`) go one way: lowered to a graph, placed by what rules take, each
unit scheduled by a search (`search`) and proved (`proof`). Where all units of a network share
memory, one plan places what they hand on (`arena`). U85 still has the code of Arm's Vela, which
stands beside ours for U55 and U65 too, in a folder of its own (`vela`); `makers` says whose a
network gets.

Nothing here knows a rule, a block or a command: what the NPU computes of a graph is the business of
`mizzen.targets.ethos_u.generator`, and what an artifact executes is `mizzen.artifact`'s.
"""
