"""What says that a stream is right, and how long it takes, whatever made it.

`sim` executes a stream bit for bit. `hazards` finds what its waits leave unordered. `timing` says
how many cycles it takes. `codec` decodes weights, for all that read a stream.

A judge that shared code with the maker of a stream would share its mistakes. So judges read the
decoded commands for themselves. `sim` and `hazards` have a reading each, so that an error in one
shows as a difference; `timing` takes that of `hazards`. Some facts are here and in the generator
too, such as the parts of the shared buffer and the order of weights: written twice, and meant so.

It imports `machine` and no other room. It must not know what makes streams, which operators an NPU
takes, or the network that a stream was made of.
"""
