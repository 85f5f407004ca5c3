"""What users bring, read into typed data and lowered to graphs: one package for each format.

A front-end turns a file or program into a tensor graph of TOSA operations that computes the same
integers, with the origin of each value in the user's model. What it has no integer form of stays in
the graph as a custom operation that says why (`refusal.RefusedError` is how a lowering function
says so), and the CPU gets it. Bad files end as E1xx, never as another exception.

Two packages are of no format. `arrangement` brings numbers elsewhere whatever they are, and
`quantized` computes with integers that stand for real numbers; what reads a format's operators
calls them with plain parameters.

A front-end knows no NPU and asks none what it can do: the same graph goes to every target, and
the target's rules decide. What joins the two is `mizzen.compiler`.
"""
