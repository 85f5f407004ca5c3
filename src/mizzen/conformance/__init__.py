"""Judges a compiler: networks of one operator, compiled, executed, compared with the kernels.

A case is a network, its inputs and what to expect; `cases` has all of them, `compilers` what they
go through, `oracles` the kernels that say what is right. `suite` runs them, a `verdict` says what
became of one, `table` puts verdicts together. `exceptions` are the differences that
are known and bounded; a difference that grows or turns up elsewhere is not one of them.

The kernels and the simulator share no code with the compiler, which is what makes a verdict worth
something. The suite belongs to Ethos-U, since Vela is what it judges; it must not use Mizzen's own
placement or workarounds, which would hide what the compiler does.
"""
