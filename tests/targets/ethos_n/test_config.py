"""Variants, capabilities and their bytes."""

from __future__ import annotations

import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.config import (
    VARIANTS,
    Profile,
    Variant,
    capabilities_of,
    decode_capabilities,
    encode_capabilities,
    find_variant,
)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=str)
@pytest.mark.parametrize("profile", Profile)
def test_capabilities_come_back(variant: Variant, profile: Profile) -> None:
    capabilities = capabilities_of(variant)
    blob = encode_capabilities(capabilities, profile)
    assert len(blob) == {Profile.V23_02: 132, Profile.V25_03: 120}[profile]
    assert decode_capabilities(blob, profile) == capabilities


def test_both_names_find_a_variant() -> None:
    by_arm = find_variant("Ethos-N78_4TOPS_4PLE_RATIO")
    assert by_arm is find_variant("ethos-n78-4tops-4ple")
    assert (capabilities_of(by_arm).srams, capabilities_of(by_arm).ogs) == (16, 16)


def test_an_unknown_variant_is_answered_with_the_nearest() -> None:
    with pytest.raises(MizzenError) as caught:
        find_variant("ethos-n78-4tops-8ple")
    assert caught.value.diagnostic.render() == (
        "error[E910]: a variant must be one of ethos-n78-1tops-2ple, ethos-n78-1tops-4ple, "
        "ethos-n78-2tops-2ple, ethos-n78-2tops-4ple, ethos-n78-4tops-2ple, ethos-n78-4tops-4ple, "
        "ethos-n78-8tops-2ple, not 'ethos-n78-4tops-8ple'\n"
        "  help did you mean ethos-n78-4tops-4ple?"
    )


@pytest.mark.parametrize(
    ("sram_kib", "problem"),
    [
        (16 * 31, "size is smaller than the minimum"),
        (16 * 144, "size is larger than the maximum"),
        (16 * 72, "size per Emc is not a multiple of 16"),
    ],
)
def test_an_sram_that_cannot_be(sram_kib: int, problem: str) -> None:
    with pytest.raises(MizzenError, match=rf"E911.*{problem}"):
        capabilities_of(VARIANTS["ethos-n78-4tops-4ple"], sram_kib * 1024)


@pytest.mark.parametrize("kib_each", [32, 48, 56, 128, 256])
def test_an_sram_that_can_be(kib_each: int) -> None:
    sram_bytes = 16 * kib_each * 1024
    assert capabilities_of(VARIANTS["ethos-n78-4tops-4ple"], sram_bytes).sram_bytes == sram_bytes


@pytest.mark.parametrize("blob", [b"", b"\5\0\0\0", bytes(132)])
def test_bytes_that_are_no_capabilities(blob: bytes) -> None:
    with pytest.raises(MizzenError, match=r"E912.*must have version 5 and 132 bytes"):
        decode_capabilities(blob)
