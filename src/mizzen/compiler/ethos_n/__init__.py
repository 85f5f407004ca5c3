"""The backend of Ethos-N78, whose code Mizzen's own compiler generates.

A TFLite network is lowered to a tensor graph, placed group by group, and its regions are compiled;
in the compiled file a custom operator stands for each (`tflite`). Regions of PyTorch's programs go
the same way (`regions`). The NPU has channels last and no TRANSPOSE, so movements of elements at a
region's edges are done by the host (`edge_layout`).

Which operations the NPU takes, and how they become a network of Arm's Support Library, is decided
in `mizzen.targets.ethos_n.patterns`; what is made of that network is `mizzen.targets.ethos_n`'s own
business. Nothing here knows a pass, a stripe or a command.
"""
