"""TFLite files: built, cut up, put together.

`builder` makes networks operator by operator, for tests, for the conformance suite and for what has
no file yet. `extract` cuts a run of operators out of a network as a network of its own, which is
what the CPU's kernels run between two NPU operators. `replacement` puts custom operators in the
place of parts.

All three work on records of the file's schema, so that what they do not touch stays as it was
written. What a custom operator holds is bytes here; who reads them is in `mizzen.artifact`.
"""
