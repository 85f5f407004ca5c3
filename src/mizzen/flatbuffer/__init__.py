"""FlatBuffers files read and written by a table of their schema.

`read` gives plain data: a table is a dictionary of its fields, a union a `Member`, a vector of
numbers a NumPy view of the file. `write` takes the same data back. The schemas of TFLite and TOSA
are tables here rather than generated classes: one reader and one writer serve both, every offset is
checked before it is followed, and what a file has beyond what Mizzen reads survives a rewrite.

It must not know what a network means: front-ends and `package` do.
"""

from mizzen.flatbuffer.reader import Member, Record, read
from mizzen.flatbuffer.schema import Schema
from mizzen.flatbuffer.writer import write

__all__ = ["Member", "Record", "Schema", "read", "write"]
