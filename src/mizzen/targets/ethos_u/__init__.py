"""Arm Ethos-U55, U65 and U85: what Mizzen knows of the machines, in six rooms.

    machine    what the NPU is: commands, configurations, programs, what its driver takes
    judge      whether a stream is right, and how long it takes
    generator  makes streams, for U55, U65 and U85
    cutting    cuts any stream into parts that are started one by one, to be measured
    vela       starts Arm's compiler, where a user asks for its streams beside ours
    legal      which operators the NPU takes, as rows, and why not the others

What judges a stream is written apart from what makes it, so that it can disagree. So arrows between
rooms point one way. All import `machine`, which imports none of them; `generator` takes rates of
the hardware from `judge`, and `cutting` its reading of operations. There are no other arrows, and a
test holds that.

`Arch` is the word for the three architectures. U55 and U65 are nearly one machine. U85 has other
registers, memories and blocks, and more operations, so that rooms have modules of its own, whose
names end in `_u85`; what the three share is written once. Nothing here knows which format a network
came in, but for `legal`, which speaks of TFLite's operators.
"""
