"""Arm Ethos-U55, U65 and U85: what Mizzen knows of the machines, in six rooms.

    machine    what the NPU is: commands, configurations, programs, what its driver takes
    judge      whether a stream is right, and how long it takes
    generator  makes streams of our own, for U55 and U65
    vela       makes streams by Arm's compiler, and works round what it gets wrong
    legal      which operators the NPU takes, as rows, and why not the others
    lift       takes a stream apart, so that it can be scheduled anew

What judges a stream is written apart from what makes it, so that it can disagree. So arrows between
rooms point one way. All import `machine`, which imports none of them; `generator` takes rates of
the hardware from `judge`; `lift` reads weights with `judge` and says what it found in terms of
`generator`. There are no other arrows, and a test holds that.

`Arch` is the word for the three architectures; U55 and U65 share most of theirs. Nothing here knows
which format a network came in, but for the two names in `legal`.
"""
