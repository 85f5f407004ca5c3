"""Mutate containers: ZIP archives by members and headers, arrays by headers, mesh programs."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from random import Random

from mutations_bytes import Mutate, number, poke, raw
from mutations_text import TEXTS, mutate_json

DTYPES = (
    "|O", "|V8", "|V2147483647", "<f4", ">f4", "<f2", "<f8", "<i8", "<u8", "|b1", "<c8",
    "<U5", "|S5", "<M8[s]", "|i1", "|u1", "<i2", "x", "", "<f16", "<i4,<i4",
)  # fmt: skip
HEADERS = (
    "{'descr': [('a', '<i4', (99999, 99999))], 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<f4', 'fortran_order': False}", "(" * 3000, "-" * 9000 + "1", "{" * 3000,
    "__import__('os').mkdir('EXECUTED')", "", "[]",
    "{'descr': '<f4', 'fortran_order': 7, 'shape': (1,), }", "\0",
)  # fmt: skip


def mutate_array(data: bytes, chance: Random) -> bytes:
    """Change an `.npy` file: its type, its shape, its header, its contents."""
    if chance.random() < 0.15 or data[:6] != b"\x93NUMPY":
        return raw(data, chance)
    length = int.from_bytes(data[8:10], "little")
    header, contents = data[10 : 10 + length].decode("latin-1"), data[10 + length :]
    match chance.randrange(9):
        case 0:
            header = chance.choice(HEADERS)
        case 1 | 2:
            header = re.sub(r"'descr': '[^']*'", f"'descr': '{chance.choice(DTYPES)}'", header)
        case 3 | 4:
            header = re.sub(r"\([^)]*\)", _shape(chance), header, count=1)
        case 5:
            header = header.replace("False", "True")
        case 6:
            contents = contents[: chance.randrange(len(contents) + 1)]
        case 7:
            damage = bytearray(data)
            poke(damage, chance.choice((6, 7, 8, 9)), "<B", chance)
            return bytes(damage)
        case _:
            contents = raw(contents, chance) if contents else b"x"
    written = header.encode("latin-1", "replace")
    if len(written) > 65000:
        written = written[:65000]
    return data[:8] + len(written).to_bytes(2, "little") + written + contents


def _shape(chance: Random) -> str:
    extents = [number(chance, 1) for _ in range(chance.choice((0, 1, 1, 2, 4, 40)))]
    return f"({''.join(f'{extent}, ' for extent in extents)})"


def archived(kinds: Mapping[str, Mutate]) -> Mutate:
    """Return what mutates archives, whose members are mutated by how their names end."""

    def mutate(data: bytes, chance: Random) -> bytes:
        match chance.randrange(10):
            case 0:
                return raw(data, chance)
            case 1 | 2:
                return _headers(data, chance)
            case _:
                return _members(data, kinds, chance)

    return mutate


def _headers(data: bytes, chance: Random) -> bytes:
    """Change fields of the archive's own records."""
    changed = bytearray(data)
    spots = [
        (found.start(), found[0]) for found in re.finditer(rb"PK(\x01\x02|\x03\x04|\x05\x06)", data)
    ]
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not spots:
            return raw(data, chance)
        at, magic = chance.choice(spots)
        poke(changed, *_field(at, magic, chance), chance)
    return bytes(changed)


FIELDS = {
    b"PK\x03\x04": "<4xHHHHHIIIHH", b"PK\x01\x02": "<4xHHHHHHIIIHHHHHII",
    b"PK\x05\x06": "<4xHHHHIIH",
}  # fmt: skip
"""Numbers of a member's header, of the row about it, of the end. Ref: APPNOTE.TXT, 4.3."""


def _field(at: int, magic: bytes, chance: Random) -> tuple[int, str]:
    letters = FIELDS[magic][3:]
    index = chance.randrange(len(letters))
    return at + 4 + struct.calcsize("<" + letters[:index]), "<" + letters[index]


def _members(data: bytes, kinds: Mapping[str, Mutate], chance: Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {row.filename: archive.read(row) for row in archive.infolist()}
    if not members:
        return raw(data, chance)
    name = chance.choice(sorted(members))
    method = zipfile.ZIP_STORED
    match chance.randrange(12):
        case 0:
            del members[name]
        case 1:
            members[name + chance.choice(TEXTS).replace("\0", "_")] = members.pop(name)
        case 2:
            members[name] = members[chance.choice(sorted(members))]
        case 3:
            method = zipfile.ZIP_DEFLATED
            members[name] = bytes(chance.choice((1, 1 << 16, 1 << 22)))
        case 4:
            method = chance.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED))
        case 5:
            members[chance.choice(("x", "x.npy", "a/../../b", "plan.json", "arrays.npz"))] = b"x"
        case _:
            ending = max((end for end in kinds if name.endswith(end)), key=len, default=None)
            members[name] = (raw if ending is None else kinds[ending])(members[name], chance)
    return zipped(members, method)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive, the same for the same members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, held in members.items():
            archive.writestr(zipfile.ZipInfo(name[:60000]), held, method)
    return file.getvalue()


MESH_HEAD = struct.Struct("<8sII")
DIGEST_BYTES = 32


def mutate_mesh(data: bytes, chance: Random) -> bytes:
    """Change a program of a mesh: its header's values or its arrays, under a right checksum."""
    if chance.random() < 0.08:
        return raw(data, chance)
    magic, version, length = MESH_HEAD.unpack_from(data)
    header = data[MESH_HEAD.size : MESH_HEAD.size + length]
    payload = data[MESH_HEAD.size + length : -DIGEST_BYTES]
    match chance.randrange(8):
        case 0 | 1 | 2 | 3:
            header = mutate_json(header.rstrip(b" "), chance)
        case 4:
            version, length = chance.choice(
                ((version, number(chance, length)), (number(chance, 1), length))
            )
            head = MESH_HEAD.pack(magic, version % (1 << 32), length % (1 << 32))
            return _signed(head + header + payload)
        case 5:
            payload = raw(payload, chance)
        case _:
            changed = bytearray(payload)
            for _ in range(chance.choice((1, 1, 2, 4))):
                poke(changed, 4 * chance.randrange(max(1, len(changed) // 4)), "<I", chance)
            payload = bytes(changed)
    header += b" " * (-(MESH_HEAD.size + len(header)) % 16)
    return _signed(MESH_HEAD.pack(magic, version, len(header)) + header + payload)


def _signed(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


CHUNKS = (
    (b"tRNS", b"\0\0"), (b"PLTE", b"abc"), (b"iCCP", b"x\0\0zz"),
    (b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 20))),
)  # fmt: skip


def mutate_png(data: bytes, chance: Random) -> bytes:
    """Change a PNG's chunks, mostly under right checksums."""
    if chance.random() < 0.2:
        return raw(data, chance)
    chunks: list[tuple[bytes, bytes]] = []
    at = 8
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    index = chance.randrange(len(chunks))
    kind, held = chunks[index]
    match chance.randrange(6):
        case 0:
            del chunks[index]
        case 1:
            chunks.insert(index, chunks[index])
        case 2:
            chunks.insert(1, chance.choice(CHUNKS))
        case _:
            changed = bytearray(held or b"\0")
            poke(changed, chance.randrange(len(changed)), chance.choice(("<B", ">I")), chance)
            chunks[index] = kind, bytes(changed)
    return data[:8] + b"".join(_chunk(*row) for row in chunks)


def _chunk(kind: bytes, held: bytes) -> bytes:
    return len(held).to_bytes(4, "big") + kind + held + zlib.crc32(kind + held).to_bytes(4, "big")
