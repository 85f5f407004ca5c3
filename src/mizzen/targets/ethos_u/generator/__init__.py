"""Makes command streams of our own for U55 and U65.

`lower` turns a graph into a sequence of `operations`. `arrange`, `cascade` and `matrix` make other
sequences of it that compute the same. `schedule` decides how each is done: blocks by what the
`shared_buffer` holds, memory by `occupancy` and `placement`. `weights` writes constants, `emit` the
commands. `options` are what a user may ask of all this by name.

Each step takes plain data and returns plain data, so that a search can try a step many times and
take what costs least. How fast the hardware is, `schedule` reads in the tables of `judge`, which
knows nothing of what is here. Nothing here is believed: what asked for a stream has it timed,
executed and checked.

It imports `judge` and `machine`, and no other room. Of `judge` it must not know what executes and
checks streams. It must not know the format of a network's file.
"""
