"""The container, and the program that is read from it."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands import INSTRUCTION_SET, encode, typed
from mizzen.targets.ethos_n.commands_values import Delay, Fence, McePle
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.program import (
    BufferInfo,
    BufferKind,
    Container,
    Program,
    StripePlace,
    Version,
    program_of,
    read_container,
    read_program,
    write_container,
)

from .golden import ETHOS_N, Compiled, compiled_networks, needs_golden

CAPABILITIES = capabilities_of(VARIANTS["ethos-n78-4tops-4ple"])
STREAM = encode([Fence(), Delay(3)])
METADATA = struct.pack("<4I", 0, 16, 16, 16)
SMALL = Container(
    version=Version.V1_0,
    constant_dma=bytes(range(32)),
    constant_control_unit=STREAM.ljust(64, b"\0") + METADATA,
    inputs=(BufferInfo(1, 0, 100), BufferInfo(2, 128, 7)),
    outputs=(BufferInfo(3, 0, 9),),
    constants_control_unit=(BufferInfo(0, 0, len(STREAM)), BufferInfo(5, 64, 16)),
    constants_dma=(BufferInfo(4, 0, 32),),
    intermediates=(),
)
NAMED = replace(SMALL, version=Version.V2_0, inputs=(BufferInfo(1, 0, 9, "Größe"),))

MCE_PLE = INSTRUCTION_SET["MCE_PLE"]
IN_BUFFERS = {"weights.dram_buffer_id": 4, "weight_metadata_buffer_id": 5}

u32 = st.integers(0, (1 << 32) - 1)


def containers() -> st.SearchStrategy[Container]:
    def of_version(version: Version) -> st.SearchStrategy[Container]:
        names = st.just("") if version is Version.V1_0 else st.text(max_size=5)
        buffers = st.lists(st.builds(BufferInfo, u32, u32, u32, names), max_size=3).map(tuple)
        blocks = st.binary(max_size=20)
        return st.builds(Container, st.just(version), blocks, blocks, *[buffers] * 5)

    return st.sampled_from(Version).flatmap(of_version)


@given(containers())
@settings(max_examples=50)
def test_any_container_comes_back(container: Container) -> None:
    assert read_container(write_container(container)) == container


@given(st.sampled_from([SMALL, NAMED]), st.data())
@settings(max_examples=200)
def test_a_damaged_container_is_refused_or_another_one(
    container: Container, data: st.DataObject
) -> None:
    good = bytearray(write_container(container))
    for place in data.draw(st.lists(st.integers(0, len(good) - 1), max_size=3)):
        good[place] = data.draw(st.integers(0, 255))
    damaged = bytes(good[: data.draw(st.integers(len(good) // 2, len(good)))])
    try:
        program = read_program(damaged, CAPABILITIES)
    except MizzenError as error:
        refused = error.diagnostic.code[:3]
    else:
        refused = None
        assert write_container(program.container) == damaged
    assert refused in {None, "E92", "E93", "E50"}


@needs_golden
@pytest.mark.parametrize("compiled", compiled_networks(), ids=str)
def test_arms_containers(compiled: Compiled) -> None:
    assert write_container(read_container(compiled.encn)) == compiled.encn


@needs_golden
def test_containers_of_the_next_release() -> None:
    paths = sorted((ETHOS_N / "networks-25").glob("*.encn"))
    assert paths
    for path in paths:
        container = read_container(path.read_bytes())
        assert container.version is Version.V2_0
        assert write_container(container) == path.read_bytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"ENCN",
            "error[E920]: a compiled network must start with ENCN and version 1.0.0 or 2.0.0; this "
            "has 4 bytes\n  help Mizzen reads networks of driver stack 23.02 and 25.03",
        ),
        (
            b"ENCN" + struct.pack("<3I", 1, 0, 4),
            "error[E920]: a compiled network must start with ENCN and version 1.0.0 or 2.0.0; this "
            "starts with 45 4e 43 4e and version 1.0.4\n"
            "  help Mizzen reads networks of driver stack 23.02 and 25.03",
        ),
        (
            write_container(SMALL)[:30],
            "error[E921]: the constants for the DMA must have 32 bytes from byte 20 on, but the "
            "container ends after 30",
        ),
        (
            write_container(SMALL)[:-2],
            "error[E921]: the number of intermediates must have 4 bytes from byte 224 on, but the "
            "container ends after 226",
        ),
        (
            write_container(SMALL) + b"xx",
            "error[E922]: a container must end after its buffers, 2 bytes follow",
        ),
        (
            write_container(NAMED).replace("ö".encode(), b"\xff\xff"),
            "error[E923]: the name of inputs, 0 must be UTF-8, not 47 72 ff ff c3 9f 65",
        ),
    ],
)
def test_what_is_no_container(data: bytes, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        read_container(data)
    assert caught.value.diagnostic.render() == message


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(MizzenError) as caught:
        write_container(replace(SMALL, intermediates=(BufferInfo(6, -1, 2),)))
    assert caught.value.diagnostic.render() == (
        "error[E924]: buffer 6 must have numbers of 32 bits, not (6, -1, 2)"
    )


def small() -> Program:
    return program_of(SMALL, CAPABILITIES)


def test_a_program_knows_its_buffers() -> None:
    program = small()
    assert program.commands == (Fence(), Delay(3))
    assert program.stream == STREAM
    assert [buffer.id for buffer in program.of_kind(BufferKind.INPUT)] == [1, 2]
    assert program.constant(4) == SMALL.constant_dma
    assert program.constant(5) == METADATA


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (
            replace(SMALL, outputs=()),
            "error[E925]: ids of buffers must count from 0 to 4, not be [0, 1, 2, 4, 5]",
        ),
        (
            replace(SMALL, constants_dma=(BufferInfo(4, 1, 32),)),
            "error[E926]: buffer 4 must lie within the 32 bytes of its constants, not at 1..33",
        ),
        (
            replace(
                SMALL,
                constants_dma=(BufferInfo(0, 0, 32),),
                constants_control_unit=(BufferInfo(4, 0, 20), BufferInfo(5, 64, 16)),
            ),
            "error[E927]: buffer 0 must hold the command stream, among the control unit's "
            "constants; it is among the constants_dma",
        ),
        (
            Container(Version.V1_0, b"", b"", (), (), (), (), ()),
            "error[E927]: buffer 0 must hold the command stream, among the control unit's "
            "constants; there is no such buffer",
        ),
    ],
)
def test_buffers_that_cannot_be(container: Container, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        program_of(container, CAPABILITIES)
    assert caught.value.diagnostic.render() == message


def test_only_constants_have_contents() -> None:
    with pytest.raises(MizzenError) as caught:
        small().constant(3)
    assert caught.value.diagnostic.render() == (
        "error[E928]: buffer 3 must be one of constants, which are [0, 4, 5]"
    )


def weights_in_buffers() -> McePle:
    """A pass whose weights are in buffer 4, their places in buffer 5."""
    command = typed(MCE_PLE(**({item.name: 0 for item in MCE_PLE.fields} | IN_BUFFERS)))
    assert isinstance(command, McePle)
    return command


def test_weights_are_found_by_their_places() -> None:
    assert small().weight_stripes(weights_in_buffers()) == (StripePlace(0, 16), StripePlace(16, 16))


@pytest.mark.parametrize(
    ("size", "offset", "message"),
    [
        (15, 64, "error[E929]: buffer 5 must hold places of 8 bytes each, not 15 bytes"),
        (
            16,
            72,
            "error[E929]: buffer 5 must name stripes within the 32 bytes of buffer 4, not 17..33",
        ),
    ],
)
def test_places_that_are_none(size: int, offset: int, message: str) -> None:
    block = STREAM.ljust(64, b"\0") + METADATA + struct.pack("<2I", 17, 16)
    container = replace(
        SMALL,
        constant_control_unit=block,
        constants_control_unit=(BufferInfo(0, 0, len(STREAM)), BufferInfo(5, offset, size)),
    )
    with pytest.raises(MizzenError) as caught:
        program_of(container, CAPABILITIES).weight_stripes(weights_in_buffers())
    assert caught.value.diagnostic.render() == message
