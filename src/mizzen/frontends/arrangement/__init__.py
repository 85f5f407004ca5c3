"""Where numbers go, whatever numbers they are: what front-ends that lower to TOSA share.

Shapes, order, parts, copies and borders (`movement`), elements by index (`lookup`), windows of
convolutions and pools (`windows`), larger and smaller images (`resize`), extremes and comparisons
(`choice`). Functions take values of the graph and plain parameters, and add operations. They know
neither a file format nor what numbers stand for: integers are `mizzen.frontends.quantized`, which
stands on this, and floating-point numbers have it too.
"""
