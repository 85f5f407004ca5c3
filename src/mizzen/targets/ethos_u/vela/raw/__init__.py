"""Vela's raw output, `.npz`: one program as a NumPy archive, read from anybody and written.

`raw` makes a `Program` of an archive and an archive of a program; `archive` reads the members, and
`objects` the object arrays among them. NumPy would load such an array by executing the pickle in
it. Files come from strangers, so nothing here does: headers are matched, sizes are checked before
memory is taken, and pickles are interpreted as far as Vela writes them, without calling anything.

It is a container and no more: it must not know how a program was made or what runs it.
"""
