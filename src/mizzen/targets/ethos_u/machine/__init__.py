"""What the NPU is, as its manuals, its register headers and its driver say.

`commands` reads and writes command streams; each command is one of `commands_rows`, with the values
of `commands_values`. `config` has the accelerators there are. `system_config` puts together the
configuration in force, out of the files that `vela_ini` reads; `recorded_config` does it out of a
report. `driver` is the payload that Arm's driver takes. A `program` is a stream with its constants
and its memory, `base_pointers` says what must fit where, and `listing` prints it.

Who makes a stream and who judges it must mean the same by a word, a region or an accelerator. So
what both of them need is here, once, and can be looked up. A configuration has the form of Vela's,
because users have such files, and keeps what they asked of a compiler beside what the hardware is.

It must not know a network or a compiler: no graph, no operator, no way to make, cost or check a
stream. It imports no other room.
"""
