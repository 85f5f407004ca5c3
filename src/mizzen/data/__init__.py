"""Data sets: files as people have them, read as arrays for a network's inputs, and their labels.

A `Column` brings what one input is given, sample by sample: an array, or files that are read when
they are needed, in whichever process needs them. A `DataSet` has a column for each input. Real
numbers become an input's integers by its own scale and zero point (`fitting`), and nothing is
resized, scaled or left out that was not asked for.

It knows what inputs look like, and runs nothing but an audio front-end's kernels: what is done with
the arrays, and what is printed, is the caller's business.
"""
