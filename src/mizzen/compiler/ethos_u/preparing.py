"""What of a network's file the compiler must not see as it is, and how it is put back.

The compiler copies metadata, so that a plan of the arena that was made for the network would lie
beside its own, and be read instead of it. It takes the extents of a tensor's shape signature for
its shape, also where a tool changed the one and left the other. Tensors are known again in what it
made by their names, which nothing makes unique. Biases that the kernels on the CPU would misread
are put into the type that they read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mizzen.artifact.ethos_u import ALLOCATION
from mizzen.artifact.steps import read_network
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Tensor
from mizzen.package.tflite.long_biases import with_long_biases

UNKNOWN = -1
"""An extent of a shape signature that is not known when the network is converted."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A network as the compiler gets it.

    model, data  the network and its file
    names        names of tensors as they were, by those that the compiler sees instead
    """

    model: Model
    data: bytes
    names: dict[str, str]

    def restored(self, compiled: bytes) -> bytes:
        """Return the compiled network with the names of the tensors as they were."""
        if not self.names:
            return compiled
        record = read(compiled, SCHEMA, self.model.name)
        for tensor in record["subgraphs"][0]["tensors"]:
            tensor["name"] = self.names.get(str(tensor["name"]), tensor["name"])
        return write(record, SCHEMA)


def prepared(model: Model, data: bytes) -> Prepared:
    """Return a network, whose file is `data`, as the compiler can take it."""
    if (record := with_long_biases(model.record)) is not None:
        data = write(record, SCHEMA)
        model = read_network(data, model.name)
    names = _unique_names(model)
    changes: dict[int, Record] = {index: {"name": name} for index, name in names.items()}
    for row in model.main.tensors:
        if _contradicted(row):
            changes.setdefault(row.index, {})["shape_signature"] = None
    if not changes and ALLOCATION not in model.metadata:
        return Prepared(model, data, {})
    main, *others = model.record["subgraphs"]
    tensors = [{**row, **changes.get(index, {})} for index, row in enumerate(main["tensors"])]
    rows: list[Record] = model.record["metadata"] or []
    record = {
        **model.record,
        "metadata": [row for row in rows if row["name"] != ALLOCATION],
        "subgraphs": [{**main, "tensors": tensors}, *others],
    }
    file = write(record, SCHEMA)
    before = {new: model.main.tensors[index].name for index, new in names.items()}
    return Prepared(read_network(file, model.name), file, before)


def _contradicted(tensor: Tensor) -> bool:
    """Whether the extents of a tensor's signature that are known are not those of its shape."""
    signature = tensor.shape_signature
    return bool(signature) and (
        len(signature) != len(tensor.shape)
        or any(
            known not in (UNKNOWN, extent)
            for known, extent in zip(signature, tensor.shape, strict=True)
        )
    )


def _unique_names(model: Model) -> dict[int, str]:
    """Return other names, by index, of tensors without one of their own."""
    tensors = model.main.tensors
    users = Counter(row.name for row in tensors)
    taken = set(users)
    found: dict[int, str] = {}
    for row in tensors:
        if row.name and users[row.name] == 1:
            continue
        name = f"{row.name or 'tensor'}-{row.index}"
        while name in taken:
            name = f"{name}-"
        taken.add(name)
        found[row.index] = name
    return found
