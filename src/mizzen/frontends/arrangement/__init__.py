"""Where numbers go, whatever numbers they are: what front-ends that lower to TOSA share.

Shapes, order, parts, copies and borders (`movement`), elements by index (`lookup`), and extremes
and comparisons (`choice`). Each function adds operations to a graph, and takes values and plain
parameters. It knows neither a file format nor what its numbers stand for: integers are
`mizzen.frontends.quantized`, which stands on this, and floating-point numbers have it too.
"""
