"""Files of TOML and JSON that people write or programs hand on, each read whole by a model.

A `Form` says how a kind of file is called, how long it may be, and the codes of what can be wrong;
the model (`mizzen.documents.model`) says which keys there are, with types, ranges and, for texts,
the characters that the places allow that they go to. What comes is a checked object or an error
that names file, place, what must hold and what came. `checking` is imported when a file
is read, and not before. It must not know what any file is about.
"""

from mizzen.documents.reading import Form, Syntax, content_of, parse, values_of

__all__ = ["Form", "Syntax", "content_of", "parse", "values_of"]
