"""From a `Model` to one graph of TOSA operations on integers.

Nodes are taken in order, and tensors by name: each stands for a term. A QuantizeLinear ends a
computation on real numbers, a DequantizeLinear begins one; what lies between becomes operations on
integers, with one rounding. What has no integer form stays in the graph as an operation that ONNX
Runtime computes on the host, with the reason, so the graph is whole whatever the network is.

Bytes without a sign are in the graph with one: 128 less. So are 16 bits, 32768 less. It must not
know how files are read, nor what a target is.
"""
