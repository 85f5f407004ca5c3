"""Manifests as bytes: one form only, found wherever they lie, and never half."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from mizzen.report.manifest import (
    BEGIN,
    END,
    NO_DIGEST,
    DamagedManifestError,
    Facts,
    Manifest,
    NewerManifestError,
    NpuCode,
    Proved,
    Source,
    configuration_of,
    digest_outside,
    find,
    manifest_in,
    proved_of,
)
from mizzen.report.proof import NOT_PROVED, Proof

DIGEST = "0123456789abcdef" * 4
MANIFEST = Manifest(
    bytes=1234,
    file_sha256=DIGEST,
    tables_sha256=DIGEST,
    npu=(NpuCode(DIGEST, DIGEST),),
    facts=Facts(
        tool="mizzen 1.2.3",
        compiler="Mizzen",
        source=Source("bäcker.tflite", DIGEST),
        configuration={"accelerator": "ethos-u55-128", "sram_bytes": 4096},
        proof=Proved(16, 20, DIGEST, "equal"),
    ),
)


def test_there_is_one_form() -> None:
    assert MANIFEST.text().decode("ascii") == (
        '{"bytes":1234,"compiler":"Mizzen",'
        '"configuration":{"accelerator":"ethos-u55-128","sram_bytes":4096},'
        f'"file_sha256":"{DIGEST}","format":1,'
        f'"npu":[{{"constants_sha256":"{DIGEST}","stream_sha256":"{DIGEST}"}}],'
        f'"proof":{{"inputs":16,"seed":20,"sha256":"{DIGEST}","verdict":"equal"}},'
        f'"source":{{"name":"b\\u00e4cker.tflite","sha256":"{DIGEST}"}},'
        f'"tables_sha256":"{DIGEST}","tool":"mizzen 1.2.3"}}'
    )


def test_it_is_found_between_other_bytes() -> None:
    framed = MANIFEST.framed()
    data = b"before" + framed + b"after"
    found = find(data)
    assert found is not None
    assert found.manifest == MANIFEST
    assert data[found.start : found.end] == framed
    assert digest_outside(data, found) == sha256(b"beforeafter").hexdigest()


def test_where_there_is_none() -> None:
    assert find(b"") is None
    assert find(b"-----BEGIN CERTIFICATE-----\n") is None


def test_no_flipped_bit_passes_for_none_or_for_another() -> None:
    framed = MANIFEST.framed()
    for bit in range(8 * len(framed)):
        data = bytearray(framed)
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedManifestError):
            find(bytes(data))
        assert manifest_in(bytes(data)) is None


def test_half_of_one_or_two_are_damaged() -> None:
    framed = MANIFEST.framed()
    for data, said in (
        (BEGIN, "must begin and end once, and there are 1 beginnings and 0 ends"),
        (framed * 2, "must begin and end once, and there are 2 beginnings and 2 ends"),
        (framed[framed.index(END) :] + framed[: framed.index(END)], "must have the bytes that"),
    ):
        with pytest.raises(DamagedManifestError, match=said):
            find(data)


def framed(line: bytes) -> bytes:
    return BEGIN + line + END + sha256(line).hexdigest().encode() + b"-----\n"


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": -1.5},
        {"bytes": True},
        {"file_sha256": DIGEST[:-1]},
        {"file_sha256": ""},
        {"npu": [{"stream_sha256": DIGEST}]},
        {"npu": 3},
        {"source": None},
        {"tool": 1},
        {"configuration": {"accelerator": None}},
        {"more": "than there is"},
        {"proof": {"inputs": 1}},
    ],
    ids=str,
)
def test_others_json_is_damaged(change: dict[str, object]) -> None:
    document = MANIFEST.as_dict() | change
    line = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(DamagedManifestError) as caught:
        find(framed(line))
    assert not isinstance(caught.value, NewerManifestError)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_damaged(line: bytes) -> None:
    with pytest.raises(DamagedManifestError, match="cannot be read"):
        find(framed(line))


def test_another_writing_of_the_same_is_damaged() -> None:
    line = json.dumps(MANIFEST.as_dict(), sort_keys=True).encode()
    with pytest.raises(DamagedManifestError, match="keys sorted, no spaces"):
        find(framed(line))


def test_a_later_format_is_told_apart() -> None:
    line = json.dumps({"format": 2, "anything": []}, separators=(",", ":")).encode()
    with pytest.raises(NewerManifestError, match="must have format 1, and has 2"):
        find(framed(line))


def test_a_configuration_has_its_names_and_one_digest_of_its_numbers() -> None:
    told = {
        "accelerator": "ethos-u55-128",
        "sram_bytes": 4096,
        "files": ["/home/somebody/vela.ini"],
        "settings": [{"name": "core_clock", "value": 5e8, "source": "/home/somebody/vela.ini"}],
        "options": {},
    }
    text = b'{"core_clock":500000000.0}'
    assert configuration_of(told) == {
        "accelerator": "ethos-u55-128",
        "sram_bytes": 4096,
        "settings_sha256": sha256(text).hexdigest(),
    }


@pytest.mark.parametrize(
    ("proof", "verdict"),
    [
        (NOT_PROVED, "not compared"),
        (Proof(16, 20, DIGEST, parts=1, equal=1), "equal"),
        (Proof(16, 20, DIGEST, parts=1, equal=1, bounded=("SOFTMAX 3",)), "bounded"),
        (Proof(16, 20, DIGEST, parts=2, equal=1, unproved=("x",)), "partly compared"),
        (Proof(16, 20, DIGEST, parts=2, equal=1, differing=("x",), unproved=("y",)), "differs"),
    ],
)
def test_verdicts(proof: Proof, verdict: str) -> None:
    digest = proof.digest or NO_DIGEST
    assert proved_of(proof) == Proved(proof.inputs, proof.seed, digest, verdict)
    whole = replace(MANIFEST, facts=replace(MANIFEST.facts, proof=proved_of(proof)))
    assert manifest_in(whole.framed()) == whole
