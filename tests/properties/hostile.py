"""Files whose containers are whole and whose contents are anybody's: sizes, shapes, names, kinds.

Damage to bytes (`damage`) seldom gets past a container. So here a file is taken apart, numbers and
texts in it are replaced by such as readers fear, and it is put together again.
"""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from mizzen.archives import packed, unpacked
from mizzen.flatbuffer import Member, Schema, read, write

NUMBERS = (0, -1, 1, 2, 127, 255, 65535, 1 << 20, (1 << 31) - 1, -(1 << 31), (1 << 32) - 1,
           1 << 40, (1 << 63) - 1)  # fmt: skip
TEXTS = ("", "x" * 5000, "\0", "../../x", "O", "|O", "V1000000000", "torch.os.system", "npu", "a b")

Place = tuple[Any, Any]
"""A container, and the key or index of a value in it."""


def hostile(data: bytes, schema: Schema, chance: random.Random) -> bytes:
    """Return a FlatBuffers file with some of its numbers, texts or tables changed."""
    record = _thawed(read(data, schema, "file"))
    change(record, chance)
    return write(record, schema)


def hostile_archive(data: bytes, chance: random.Random) -> bytes:
    """Return an archive with a change in one of its documents or arrays, or in itself."""
    members = unpacked(data)
    name = chance.choice(sorted(members))
    match chance.randrange(6):
        case 0:
            del members[name]
        case 1:
            return _lying(members, name, chance)
        case 2:
            members[name] = members[name][: chance.randrange(len(members[name]) + 1)]
        case _:
            members[name] = _hostile_member(name, members[name], chance)
    return packed(members)


def hostile_array(data: bytes, chance: random.Random) -> bytes:
    """Return an `.npy` file with another header, or with other contents than it says."""
    header = chance.choice(
        [
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775807, 2), }",
            "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '|i1', 'fortran_order': True, 'shape': (99999999999,), }",
            "{'descr': '|V2147483647', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': [('a', '<i4', (99999, 99999))], 'fortran_order': False, 'shape': (2,), }",
            "(" * 3000,
            "-" * 9000 + "1",
            "__import__('os').mkdir('EXECUTED')",
            "{'descr': '<f4', 'fortran_order': False}",
        ]
    ).encode()
    if chance.randrange(4) == 0:
        return data[: chance.randrange(len(data))]
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\x80\x04." * 9


def change(tree: Any, chance: random.Random) -> None:
    """Replace one to three values of a tree of dictionaries, lists, arrays and scalars."""
    for _ in range(chance.randrange(1, 4)):
        holder, key = chance.choice(list(_places(tree)))
        holder[key] = _other(holder[key], chance)


def _other(value: Any, chance: random.Random) -> Any:
    if isinstance(value, np.ndarray):
        return _other_array(cast("np.ndarray[Any, Any]", value), chance)
    if isinstance(value, bool) or value is None:
        return chance.choice([True, False, None, 1])
    if isinstance(value, (int, float, np.generic)):
        return chance.choice(NUMBERS)
    if isinstance(value, str):
        return chance.choice(TEXTS)
    if isinstance(value, list):
        return chance.choice([[], value[:-1], value * 2])
    return value


def _other_array(array: np.ndarray[Any, Any], chance: random.Random) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in "iu" or not array.size or chance.randrange(5) == 0:
        return array[: len(array) // 2]
    limits = np.iinfo(array.dtype)
    changed = array.copy()
    value = min(max(chance.choice(NUMBERS), limits.min), limits.max)
    changed[chance.randrange(len(changed))] = value
    return changed


def _places(tree: Any) -> Iterator[Place]:
    holders = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in holders:
        yield tree, key
        if isinstance(value, Member):
            yield from _places(value.fields)
        elif isinstance(value, (dict, list)):
            yield from _places(value)


def _thawed(tree: Any) -> Any:
    return copy.deepcopy(tree)


def _hostile_member(name: str, held: bytes, chance: random.Random) -> bytes:
    if name.endswith((".json", "json")):
        document = json.loads(held)
        change(document, chance)
        return json.dumps(document).encode()
    if name.endswith(".npy"):
        return hostile_array(held, chance)
    if name.endswith((".npz", ".pt2")):
        return hostile_archive(held, chance)
    damage = bytearray(held or b"\0")
    damage[chance.randrange(len(damage))] ^= 1 << chance.randrange(8)
    return bytes(damage)


def _lying(members: dict[str, bytes], name: str, chance: random.Random) -> bytes:
    """Return an archive whose member unpacks to a thousand times what its header says."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, held in members.items():
            archive.writestr(zipfile.ZipInfo(key), bytes(1 << 24) if key == name else held,
                             zipfile.ZIP_DEFLATED)  # fmt: skip
    data = file.getvalue()
    wrong = chance.choice([10, 0, (1 << 32) - 2, 1 << 24])
    return data.replace((1 << 24).to_bytes(4, "little"), wrong.to_bytes(4, "little"))


def mutations(
    kinds: dict[str, tuple[bytes, Callable[[bytes, random.Random], bytes]]], count: int, seed: int
) -> Iterator[tuple[str, int, bytes]]:
    """Return `count` hostile files of each kind, with the number that makes each again."""
    for kind, (data, attack) in kinds.items():
        for number in range(seed, seed + count):
            chance = random.Random(f"{kind} {number}")
            yield kind, number, attack(data, chance)
