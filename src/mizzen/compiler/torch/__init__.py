"""Compiles exported PyTorch programs, for whichever NPU the options name.

A converted program (`exported` reads it from a file) is lowered to a tensor graph and placed
(`placement`); its regions are compiled through the backend's `RegionCompiler`. `compile` puts the
artifact together: NPU programs, and exported parts of the program that PyTorch runs between them;
its report says for each node of the program where it went and why.

The steps of `mizzen.torch`, `mizzen.compile` and `mizzen check` for `.pt2` are all this one way.
Nothing here may ask which NPU it compiles for. PyTorch is imported inside functions only: who
does not use it need not install it.
"""
