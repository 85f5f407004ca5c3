"""Compiles ONNX networks, for whichever NPU the options name.

A network is read and lowered to a tensor graph by `mizzen.frontends.onnx`; `compile` places the
graph and has the artifact put together (`mizzen.compiler.assembly`). `host` says what the host does
of it: the edge between the user's numbers and the graph's integers, and parts of the network that
ONNX Runtime computes, which `parts` cuts out.

Nothing here may ask which NPU it compiles for. ONNX Runtime is not needed to compile: a part is
written as bytes, and computed where the artifact is executed.
"""
