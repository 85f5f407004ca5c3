"""Compiles exported PyTorch programs, for whichever NPU the options name.

A converted program (`pt2` reads it from a file) is lowered to a tensor graph, placed, and compiled
region by region through the backend's `RegionCompiler` (`compile`); `assembly` puts the artifact
together: NPU programs, and exported parts of the program that PyTorch runs between them. `report`
says for each node of the program where it went and why.

The steps of `mizzen.torch`, `mizzen.compile` and `mizzen check` for `.pt2` are all this one way.
Nothing here may ask which NPU it compiles for. PyTorch is imported inside functions only: whoever
does not use it need not install it.
"""
