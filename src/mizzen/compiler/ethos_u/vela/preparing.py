"""What of a network's file the compiler must not see as it is, and how it is put back.

The compiler copies metadata, so that a plan of the arena that was made for the network would lie
beside its own, and be read instead of it. It takes the extents of a tensor's shape signature for
its shape, also where a tool changed the one and left the other. It refuses a tensor whose buffer is
empty and not the first one, and loses the contents of constants that the network gives. Tensors are
known again in what it made by their names, which nothing makes unique. Biases that the kernels on
the CPU would misread are put into the type that they read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from mizzen.artifact.steps import read_network
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer.memory_plan import ALLOCATION, NOT_IN_ARENA
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Subgraph, Tensor
from mizzen.package.tflite.long_biases import with_long_biases

Indices = npt.NDArray[np.int32]

Constant = tuple[Record, Record]
"""A tensor and its buffer."""

TENSORS_OF_PLAN = 2
"""Which number of the plan of the arena counts its tensors. Ref: Vela 5.2, tflite_writer.py."""

UNKNOWN = -1
"""An extent of a shape signature that is not known when the network is converted."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A network as the compiler gets it.

    model, data  the network and its file
    names        names of tensors as they were, by those that the compiler sees instead
    outputs      what the network gives, if that has constants, which the compiler does not see: a
                 place among its outputs, or the tensor and its contents
    """

    model: Model
    data: bytes
    names: dict[str, str]
    outputs: tuple[int | Constant, ...] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether something is to be put back into the compiled network."""
        return bool(self.names) or self.outputs is not None

    def restored(self, compiled: bytes) -> bytes:
        """Return the compiled network with names of tensors and outputs as they were."""
        if not self.is_changed:
            return compiled
        record = read(compiled, SCHEMA, self.model.name)
        main = record["subgraphs"][0]
        for tensor in main["tensors"]:
            tensor["name"] = self.names.get(str(tensor["name"]), tensor["name"])
        if self.outputs is not None:
            main["outputs"] = np.array(list(_given(record, self.outputs)), np.int32)
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
        if row.data is None and model.record["subgraphs"][0]["tensors"][row.index]["buffer"]:
            changes.setdefault(row.index, {})["buffer"] = 0
    outputs = _outputs(model)
    if not changes and outputs is None and ALLOCATION not in model.metadata:
        return Prepared(model, data, {})
    main, *others = model.record["subgraphs"]
    tensors = [{**row, **changes.get(index, {})} for index, row in enumerate(main["tensors"])]
    seen = main["outputs"] if outputs is None else _computed_outputs(model)
    rows: list[Record] = model.record["metadata"] or []
    record = {
        **model.record,
        "metadata": [row for row in rows if row["name"] != ALLOCATION],
        "subgraphs": [{**main, "tensors": tensors, "outputs": seen}, *others],
    }
    file = write(record, SCHEMA)
    before = {new: model.main.tensors[index].name for index, new in names.items()}
    return Prepared(read_network(file, model.name), file, before, outputs)


def _computed_outputs(model: Model) -> Indices:
    main = model.main
    return np.array([row for row in main.outputs if not _is_constant(main, row)], np.int32)


def _outputs(model: Model) -> tuple[int | Constant, ...] | None:
    """Return what a network gives as `Prepared` has it; None if it gives no constants."""
    main, record = model.main, model.record
    if not any(_is_constant(main, row) for row in main.outputs):
        return None
    places = count()
    rows: list[Record] = record["subgraphs"][0]["tensors"]
    return tuple(
        (rows[row], record["buffers"][rows[row]["buffer"]])
        if _is_constant(main, row)
        else next(places)
        for row in main.outputs
    )


def _is_constant(main: Subgraph, index: int) -> bool:
    """Whether a tensor is neither computed nor taken."""
    row = main.tensors[index]
    there = row.data is not None or not row.elements
    return there and not any(index in given for given in _given_to(main))


def _given_to(main: Subgraph) -> Iterator[tuple[int, ...]]:
    yield main.inputs
    yield from (row.outputs for row in main.operators)


def _given(record: Record, outputs: Sequence[int | Constant]) -> Iterator[int]:
    """Return the outputs of a compiled network, to which constants are added."""
    main, known = record["subgraphs"][0], dict[str, int]()
    before: Sequence[int] = () if main["outputs"] is None else main["outputs"]
    for row in outputs:
        if isinstance(row, int):
            yield int(before[row])
            continue
        tensor, buffer = row
        place = known.setdefault(tensor["name"], len(main["tensors"]))
        if place == len(main["tensors"]):
            main["tensors"].append({**tensor, "buffer": len(record["buffers"])})
            record["buffers"].append(buffer)
            _place_in_flash(record)
        yield place


def _place_in_flash(record: Record) -> None:
    """Say of one tensor more in the compiler's plan of the arena that it does not lie there."""
    for row in record["metadata"] or ():
        if row["name"] == ALLOCATION:
            buffer: Record = record["buffers"][row["buffer"]]
            plan = np.append(buffer["data"].view(np.int32), np.int32(NOT_IN_ARENA))
            plan[TENSORS_OF_PLAN] += 1
            buffer["data"] = plan.view(np.uint8)


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
