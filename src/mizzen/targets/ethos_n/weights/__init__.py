"""The weight stream: how a pass's weights are compressed, and how the banks get them.

An output generator reads one stream of bits; how its symbols are coded is chosen anew for each
output feature map, and what the stream before it said need not be said again. Arm's encoder is
followed to the last bit, ties included, because a container is compared with Arm's byte for byte.
All streams of a pass are worked on at once, as arrays: weights come in millions, and an encoder in
Python that took them one by one would be the compiler's whole time.

It must not know passes, plans or the work graph: it takes integers and a `WeightLayout`. The
simulator's decoder shares `format` with it, the table of the stream's fields, and nothing else.
"""
