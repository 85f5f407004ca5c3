"""Makes command streams of our own for U55, U65 and U85.

`lower` turns a graph into a sequence of `operations`. `arrange`, `cascade` and `matrix` make other
sequences of it that compute the same. `schedule` decides how each is done: blocks by what the
`shared_buffer` holds, memory by `occupancy` and `placement`. `weights` writes constants, `emit` the
commands. `options` are what a user may ask of all this by name.

All machines go one way, because most of it is the same: an operation says in U55's words what all
have, and words of its own for what only U85 has. U85 differs at the two ends. Rules of `lower`
that need what it has come before the shared ones, and are left out on other machines. Which blocks
fit (`shared_buffer`), the order of weights, and registers (`emit`) have a module for each. What is
between asks for facts, and has few lines for one machine.

Each step takes plain data and returns plain data, so that a search can try a step many times and
take what costs least. How fast the hardware is, `schedule` reads in the tables of `judge`, which
knows nothing of what is here. Nothing here is believed: what asked for a stream has it timed,
executed and checked.

It imports `judge` and `machine`, and no other room. Of `judge` it must not know what executes and
checks streams. It must not know the format of a network's file.
"""
