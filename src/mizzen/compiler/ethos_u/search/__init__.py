"""Look for the schedule of a sequence that costs least.

A sequence of operations can be arranged, cut into stripes and scheduled in many ways. `candidates`
puts them in the order in which they are worth scheduling; `searching` has them scheduled and
emitted, and takes the fastest that fits, or the one in least memory (`smallest`); `judging` says
what a program costs, by the timing model and by Vela's formula; `costs` puts that in a report's
form.

It must not know networks, files, nor how operations became a sequence.
"""
