"""ONNX networks, read with care, brought to few forms, and lowered to graphs of TOSA operations.

`reading` takes a file's bytes (and, for weights kept outside, the folder that it lies in) to a
`Model`: plain data with every shape known, constants folded, and one form of quantisation,
QuantizeLinear and DequantizeLinear, whichever operators the file was written with. `lowering`
takes a `Model` to a graph. The integers are those of `mizzen.frontends.quantized`, which the
PyTorch front-end shares; what has no integer form stays in the graph as a custom operation that
says why, and ONNX Runtime computes it on the host.

Reading takes bytes apart within bounds (`wire`, `tensors`, `external`), then takes one node after
another to the forms that lowering knows (`normalising`, with `forms`, `dialects`, `folding`), and
ends with what can only be seen in the whole (`finishing`). `writing` goes back: some nodes as a
file of their own.

Nothing here may know an NPU. The package `onnx` is imported by `schemas` and `writing` alone,
inside functions, and what comes from a file reaches its C++ code one checked node at a time.
"""
