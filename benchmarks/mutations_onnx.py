"""Give mutated ONNX files to what reads them: each ends in a network or a diagnostic.

``python benchmarks/mutations_onnx.py --count 100000 --jobs 2`` starts from ONNX's own operator
cases, which its package makes (once with integers as inputs, once as constants), and from the files
of ``--models``, if that folder is given. A file is changed by field (another number, name, type or
operator, a field more or less, one from another place) or by byte, then read, and written again if
that worked. What is counted, noted and kept in ``--folder`` is as in `mutations`, and so is
``--number``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mutations import KINDS, Campaign, figures, numbered, show, warm_up
from mutations_bytes import number, raw, real
from mutations_formats import Corpus, Format, Use, corpus_in, input_of

MOST_BASE_BYTES = 200_000
KINDS_OF_NODES = (
    "Add", "Conv", "Reshape", "Slice", "Expand", "Tile", "ConstantOfShape", "Range", "Pad",
    "Resize", "QuantizeLinear", "DequantizeLinear", "QLinearConv", "If", "Loop", "Cast", "Concat",
    "Identity", "Transpose", "Gather", "Softmax", "LSTM", "Split", "Upsample", "MatMul", "Dropout",
)  # fmt: skip


def _onnx_read(path: Path) -> object:
    from mizzen.frontends.onnx.reading import read
    from mizzen.frontends.onnx.writing import submodel

    model = read(path.read_bytes(), path.name, path.parent, {})
    return submodel(model, model.nodes, model.inputs, model.outputs, model.types)


def mutate_onnx(data: bytes, chance: Random) -> bytes:
    """Change a file by field or by byte."""
    if chance.random() < 0.2:
        return raw(data, chance)
    model = onnx.ModelProto.FromString(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        _change(_somewhere(model, chance), model, chance)
    return model.SerializeToString()


def _somewhere(model: Any, chance: Random) -> Any:
    """Walk down to a message, mostly to one of a graph."""
    message = model
    while True:
        inner = [
            value if field.is_repeated else [value]
            for field, value in message.ListFields()
            if field.message_type is not None
        ]
        if not inner or (message is not model and chance.random() < 0.25):
            return message
        message = chance.choice(chance.choice(inner))


def _change(message: Any, model: Any, chance: Random) -> None:
    fields = list(message.DESCRIPTOR.fields)
    present = [field for field, _ in message.ListFields()]
    field = chance.choice(present if present and chance.random() < 0.85 else fields)
    if chance.random() < 0.1:
        message.ClearField(field.name)
    elif field.is_repeated:
        _change_list(getattr(message, field.name), field, model, chance)
    elif field.message_type is not None:
        getattr(message, field.name).SetInParent()
    else:
        near = getattr(message, field.name)
        setattr(message, field.name, _value(field, near, model, chance))


def _change_list(values: Any, field: Any, model: Any, chance: Random) -> None:
    match chance.randrange(4):
        case 0 if len(values):
            del values[chance.randrange(len(values))]
        case 1 if len(values):
            values.append(values[chance.randrange(len(values))])
        case 2 if len(values) > 1:
            first, second = chance.sample(range(len(values)), 2)
            kept = [type(value).FromString(value.SerializeToString()) for value in values] \
                if field.message_type is not None else list(values)  # fmt: skip
            kept[first], kept[second] = kept[second], kept[first]
            del values[:]
            values.extend(kept)
        case _ if field.message_type is not None:
            values.add()
        case _ if len(values) and chance.random() < 0.8:
            place = chance.randrange(len(values))
            values[place] = _value(field, values[place], model, chance)
        case _:
            values.append(_value(field, None, model, chance))


def _value(field: Any, near: Any, model: Any, chance: Random) -> Any:
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return _fitting(field, real(chance, near or 1.0))
    if field.type == field.TYPE_BYTES:
        return raw(near, chance) if near else chance.randbytes(chance.choice((0, 1, 4, 16)))
    if field.cpp_type == field.CPPTYPE_STRING:
        return _text(field, model, chance)
    if field.cpp_type == field.CPPTYPE_ENUM:
        return chance.choice(list(field.enum_type.values_by_number))
    if field.name in ("elem_type", "data_type"):
        return chance.randrange(0, 28)
    small = chance.randrange(-2, 9) if chance.random() < 0.5 else number(chance, near or 0)
    return _fitting(field, small)


def _fitting(field: Any, value: Any) -> Any:
    """Bring a number to what a field holds."""
    match field.cpp_type:
        case field.CPPTYPE_INT32:
            return (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)
        case field.CPPTYPE_INT64:
            return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)
        case field.CPPTYPE_UINT64:
            return int(value) % (1 << 64)
        case field.CPPTYPE_FLOAT:
            return value if abs(value) < 3.4e38 else float("inf")
        case _:
            return value


def _text(field: Any, model: Any, chance: Random) -> str:
    if field.name == "op_type" and chance.random() < 0.8:
        return chance.choice(KINDS_OF_NODES)
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    return chance.choice([*names, "", "..", "/etc/passwd", "x" * 300, "com.microsoft", "ai.onnx"])


ONNX = Format("onnx", 1, ("*.onnx",), mutate_onnx, (Use(1, function=_onnx_read),))


def make(folder: Path, models: Path | None) -> Path:
    """Make the corpus, unless it is there already."""
    done = folder / "complete"
    if done.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in _cases():
        (folder / f"{name}.onnx").write_bytes(data)
    for path in sorted(models.rglob("*.onnx")) if models is not None else ():
        if path.stat().st_size <= MOST_BASE_BYTES and _is_sound(path.read_bytes()):
            (folder / f"{path.parent.name}-{path.name}").write_bytes(path.read_bytes())
    done.touch()
    return folder


def _cases() -> list[tuple[str, bytes]]:
    from onnx.backend.test.case.node import collect_testcases

    collect: Callable[[Any], Any] = collect_testcases
    made: list[Any] = [case for case in collect(None) if case.model is not None]
    every = [(case.name, case.model.SerializeToString()) for case in made]
    every += [(f"{case.name}_known", _known(case)) for case in made if case.data_sets]
    return [(name, data) for name, data in every if len(data) <= MOST_BASE_BYTES]


def _known(case: Any) -> bytes:
    """Make constants of a case's inputs that are integers, as shapes and axes are."""
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    for declared, value in zip(model.graph.input, case.data_sets[0][0], strict=False):
        if isinstance(value, np.ndarray) and value.dtype == np.int64:
            model.graph.initializer.append(numpy_helper.from_array(value, declared.name))
    return model.SerializeToString()


def _is_sound(data: bytes) -> bool:
    try:
        onnx.ModelProto.FromString(data)
    except Exception:
        return False
    return True


def _corpus(folder: Path, models: Path | None) -> Corpus:
    return corpus_in(make(folder / "corpus", models), (ONNX,))


def main() -> int:
    """Read files, and print what was seen."""
    parser = argparse.ArgumentParser(description="Read mutated ONNX files.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--folder", type=Path, default=Path("mutations-onnx"), help="corpus, log, findings"
    )
    parser.add_argument("--models", type=Path, help="a folder of more files to start from")
    parser.add_argument("--number", type=int, help="read the file of this number only")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    corpus = _corpus(folder, arguments.models)
    if arguments.number is not None:
        return show(input_of(corpus, arguments.seed, arguments.number), corpus).kind != "right"
    warm_up(corpus)
    chunks = numbered(arguments.first, arguments.count)
    campaign = Campaign(corpus, folder, arguments.seed, chunks)
    campaign.run(arguments.jobs)
    said = figures(campaign.rows.values())
    print(json.dumps({"figures": said}) if arguments.json else json.dumps(said, indent=1))
    return int(any(said[name] for name in KINDS.values()))


if __name__ == "__main__":
    sys.exit(main())
