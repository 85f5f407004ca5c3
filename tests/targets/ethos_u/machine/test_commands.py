"""The command tables: against Vela's streams, the register headers' data, and themselves."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.isa import Command, Field, Instruction, Kind
from mizzen.isa.listing import markdown
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.commands import (
    Arch,
    decode,
    decode_partial,
    encode,
    instruction_set,
)

from .. import streams  # noqa: TID252 tests are no package with a name
from .strategies import programs

CASES = Path(__file__).parent / "encodings"
ISA_DATA = Path("shared/knowledge/data/ethosu-isa.json")
MODELS = ["kws_ref_model.tflite", "micro_speech_quantized.tflite"]
REGISTERS = (
    "IFM_REGION OFM_REGION WEIGHT_REGION SCALE_REGION DMA0_SRC_REGION DMA0_DST_REGION IFM2_REGION"
)


def words(text: str) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint32)


def cases(arch: Arch) -> list[tuple[str, str]]:
    """Return (command and fields, words) of each line of the architecture's case file."""
    lines = (CASES / f"{arch.name.lower()}.case").read_text().splitlines()
    pairs = [line.partition("  ; ") for line in lines if line and not line.startswith("#")]
    return [(text, encoding) for text, _, encoding in pairs]


def spoken(instruction: Instruction) -> str:
    fields = (f"{item.name}={text}" for item, text in instruction.spoken())
    return " ".join([instruction.name, *fields])


def assembled(text: str, arch: Arch) -> Instruction:
    name, *settings = text.split()
    command = instruction_set(arch)[name]
    values = dict(setting.split("=") for setting in settings)
    return command(**{item.name: meant(item, values[item.name]) for item in command.fields})


def meant(item: Field, text: str) -> int:
    return int(text) if item.enum is None else item.enum[text]


@pytest.mark.parametrize("arch", Arch)
class TestEncodings:
    def test_every_command_has_a_case(self, arch: Arch) -> None:
        names = [text.split()[0] for text, _ in cases(arch)]
        assert sorted(names) == sorted(command.name for command in instruction_set(arch).commands)

    def test_words_read_as_the_case_says(self, arch: Arch) -> None:
        for text, encoding in cases(arch):
            assert [spoken(one) for one in decode(words(encoding), arch)] == [text]

    def test_fields_make_the_words_of_the_case(self, arch: Arch) -> None:
        for text, encoding in cases(arch):
            assert encode([assembled(text, arch)], arch).tolist() == words(encoding).tolist()

    def test_kinds_follow_what_commands_do(self, arch: Arch) -> None:
        for command in instruction_set(arch).commands:
            assert (command.kind is Kind.SETTING) == command.name.startswith("SET_")


@pytest.mark.parametrize("arch", Arch)
def test_the_reference_page_has_every_command(arch: Arch) -> None:
    page = markdown(instruction_set(arch))
    for command in instruction_set(arch).commands:
        assert f"| `{command.key:#06x}` | `{command.name}` | | | | {command.doc} |" in page
    assert "| | | `stride_x` | word 0, 22, word 0, 16 | 1 to 4 elements | Stride in x |" in page


@given(data=st.data(), arch=st.sampled_from(Arch))
def test_decoding_inverts_encoding(data: st.DataObject, arch: Arch) -> None:
    program = data.draw(programs(instruction_set(arch)))
    encoded = encode(program, arch)
    decoded = decode(encoded, arch)
    assert decoded == program
    assert [one.offset_words for one in decoded] == offsets(program)
    assert encode(decoded, arch).tolist() == encoded.tolist()


def offsets(program: list[Instruction]) -> list[int]:
    ends = np.cumsum([0, *(one.command.words for one in program)])
    return ends[:-1].tolist()


@given(
    stream=st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([0x0100, 0x4000, 0x00AA4000])),
    arch=st.sampled_from(Arch),
)
def test_any_words_decode_or_say_why_not(stream: list[int], arch: Arch) -> None:
    array = np.array(stream, dtype=np.uint32)
    partial = decode_partial(array, arch)
    good = encode(partial.instructions, arch)
    assert good.tolist() == stream[: len(good)]
    if partial.stopped_by is None:
        assert len(good) == len(stream)
        assert decode(array, arch) == partial.instructions
        return
    with pytest.raises(MizzenError) as caught:
        decode(array, arch)
    assert caught.value.diagnostic == partial.stopped_by
    assert partial.stopped_by.origin is not None
    assert partial.stopped_by.origin.command == len(good)


@pytest.mark.parametrize("accelerator", streams.ACCELERATORS)
@pytest.mark.parametrize("model", MODELS)
def test_vela_streams_decode_fully_and_encode_identically(
    archive: Callable[[str, str], bytes], model: str, accelerator: str
) -> None:
    stream = driver.parse(streams.payload(archive(model, accelerator))).words
    arch = streams.ACCELERATORS[accelerator][0]
    program = decode(stream, arch)
    assert program[-1].name == "OP_STOP"
    assert encode(program, arch).tobytes() == stream.tobytes()


def test_mutated_streams_decode_or_say_why_not(archive: Callable[[str, str], bytes]) -> None:
    chance = random.Random(20)
    for accelerator, (arch, *_) in streams.ACCELERATORS.items():
        stream = driver.parse(streams.payload(archive(MODELS[0], accelerator))).words
        for _ in range(40):
            mutated = stream.copy()
            for place in chance.sample(range(len(stream)), 3):
                mutated[place] ^= 1 << chance.randrange(32)
            partial = decode_partial(mutated, arch)
            good = encode(partial.instructions, arch)
            assert good.tobytes() == mutated[: len(good)].tobytes()
            assert (partial.stopped_by is None) == (len(good) == len(mutated))


WRONG_STREAMS = [
    (
        "00004000",
        """\
error[E501]: SET_IFM_BASE0 must have 2 words, but the stream ends after 1 of them
  at   command at word 1""",
    ),
    (
        "000001ff",
        """\
error[E502]: 0x000001ff must start a command of Ethos-U55, but there is no opcode 0x1ff with \
control 0
  at   command at word 1""",
    ),
    (
        "00000500",
        """\
error[E502]: 0x00000500 must start a command of Ethos-U55, but bits 13:10 must be zero, not 0x1
  at   command at word 1""",
    ),
    (
        "0000c002",
        """\
error[E502]: 0x0000c002 must start a command of Ethos-U55, but control (bits 15:14) must be 0 or \
1, not 3
  at   command at word 1""",
    ),
    (
        "00020003",
        """\
error[E503]: OP_DEPTHWISE: bit 17 of word 0 is reserved and must be zero, word 0 is 0x00020003
  at   command at word 1
  rule ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: npu_op_depthwise_t""",
    ),
    (
        "00014000 00000000",
        """\
error[E503]: SET_IFM_BASE0: bit 16 of word 0 is reserved and must be zero, word 0 is 0x00014000
  at   command at word 1
  rule ethosu55_interface.h: npu_set_ifm_base0_t""",
    ),
    (
        "00004023 00100000",
        """\
error[E503]: SET_SCALE_LENGTH: bit 20 of word 1 is reserved and must be zero, word 1 is 0x00100000
  at   command at word 1
  rule ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: npu_set_scale_length_t""",
    ),
    (
        "00070005",
        """\
error[E504]: OP_POOL: pooling_mode must be one of MAX (0), AVERAGE (1), REDUCE_SUM (2), not 7
  at   command at word 1
  rule ethosu55_interface.h, ethosu65_interface.h: npu_op_pool_t""",
    ),
]


@pytest.mark.parametrize(("stream", "message"), WRONG_STREAMS)
def test_a_wrong_stream_says_where_and_why(stream: str, message: str) -> None:
    with pytest.raises(MizzenError) as caught:
        decode(words("00000002 " + stream), Arch.U55)
    assert str(caught.value) == message


WRONG_VALUES = [
    (
        "SET_KERNEL_STRIDE",
        {"stride_x": 5},
        "error[E511]: SET_KERNEL_STRIDE: stride_x must be in 1..4 elements, not 5",
    ),
    (
        "SET_KERNEL_STRIDE",
        {"stride_y": 0},
        "error[E511]: SET_KERNEL_STRIDE: stride_y must be in 1..4 elements, not 0",
    ),
    (
        "SET_KERNEL_STRIDE",
        {"weight_order": 2},
        "error[E511]: SET_KERNEL_STRIDE: weight_order must be one of DEPTH_FIRST (0), "
        "PART_KERNEL_FIRST (1), not 2",
    ),
    (
        "SET_IFM_ZERO_POINT",
        {"zero_point": 32768},
        "error[E511]: SET_IFM_ZERO_POINT: zero_point must be in -32768..32767, not 32768",
    ),
    (
        "SET_IFM_BASE0",
        {"address": 1 << 32},
        "error[E511]: SET_IFM_BASE0: address must be in 0..4294967295 bytes, not 4294967296",
    ),
    (
        "SET_IFM_STRIDE_X",
        {"stride": -(1 << 39) - 1},
        "error[E511]: SET_IFM_STRIDE_X: stride must be in -549755813888..549755813887 bytes, "
        "not -549755813889",
    ),
    (
        "SET_OFM_WIDTH_M1",
        {"width": 0},
        "error[E511]: SET_OFM_WIDTH_M1: width must be in 1..65536 elements, not 0",
    ),
    (
        "SET_OFM_WIDTH_M1",
        {"width": 1, "height": 1},
        "error[E512]: SET_OFM_WIDTH_M1: the fields are width, not 'height'",
    ),
    (
        "SET_OFM_WIDTH_M1",
        {},
        "error[E512]: SET_OFM_WIDTH_M1: needs a value for width, none came",
    ),
    (
        "OP_CONV",
        {"weights_ifm2": 1},
        "error[E512]: OP_CONV: there are no fields, not 'weights_ifm2'",
    ),
]
STRIDE = {
    "stride_x": 1,
    "stride_y": 1,
    "weight_order": 0,
    "dilation_x": 0,
    "dilation_y": 0,
    "decomposition": 0,
}


@pytest.mark.parametrize(("name", "values", "message"), WRONG_VALUES)
def test_encoding_refuses_what_does_not_fit(
    name: str, values: dict[str, int], message: str
) -> None:
    command = instruction_set(Arch.U55)[name]
    given_values = STRIDE | values if name == "SET_KERNEL_STRIDE" else values
    for act in (
        lambda: command(**given_values),
        lambda: encode([Instruction(command, given_values)], Arch.U55),
    ):
        with pytest.raises(MizzenError) as caught:
            act()
        assert str(caught.value) == message


def test_encoding_refuses_commands_of_another_machine() -> None:
    resize = instruction_set(Arch.U85)["OP_RESIZE"](resize_mode=0)
    with pytest.raises(MizzenError) as caught:
        encode([resize], Arch.U65)
    assert str(caught.value) == "error[E513]: Ethos-U65 has no command OP_RESIZE of this form"
    with pytest.raises(MizzenError) as caught:
        encode([instruction_set(Arch.U65)["SET_IFM_BASE0"](address=0)], Arch.U55)
    assert str(caught.value) == "error[E513]: Ethos-U55 has no command SET_IFM_BASE0 of this form"
    with pytest.raises(MizzenError) as caught:
        instruction_set(Arch.U55)["SET_PARALLEL_MODE"]
    assert str(caught.value) == "error[E513]: Ethos-U55 has no command SET_PARALLEL_MODE"


def test_split_fields_have_their_high_bit_apart() -> None:
    stride = instruction_set(Arch.U65)["SET_KERNEL_STRIDE"]
    for x, y, parameter in [(1, 1, 0x000), (2, 1, 0x001), (3, 1, 0x040), (1, 3, 0x200)]:
        encoded = encode([stride(**STRIDE | {"stride_x": x, "stride_y": y})], Arch.U65)
        assert encoded.tolist() == [parameter << 16 | 0x122]


def test_addresses_have_40_bits_and_strides_a_sign() -> None:
    def word_pair(name: str, **values: int) -> list[int]:
        return encode([instruction_set(Arch.U85)[name](**values)], Arch.U85).tolist()

    assert word_pair("SET_IFM_BASE0", address=(1 << 40) - 1) == [0x00FF4000, 0xFFFFFFFF]
    assert word_pair("SET_IFM_BASE0", address=0x12_3456_789A) == [0x00124000, 0x3456789A]
    assert word_pair("SET_OFM_STRIDE_Y", stride=-16) == [0x00FF4015, 0xFFFFFFF0]


# Conformance with the register headers, whose fields a data file beside the project lists.


@pytest.fixture(scope="module")
def headers(repository: Path) -> dict[str, Any]:
    path = repository.parent / ISA_DATA
    if not path.is_file():
        pytest.skip(f"no data of the register headers: {path} is no file")
    return json.loads(path.read_text())


def header_fields(row: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Return (first bit, width) of a row's fields, least significant first, split fields joined."""
    joined: dict[str, list[tuple[int, int]]] = {}
    order = {"lo": 0, "lsb": 0, "hi": 1, "msb": 1}
    for name, low, width, _ in sorted(row["fields"], key=lambda f: order.get(f[0][-2:], 0)):
        stem = name.removesuffix("_m1")
        for suffix in ("_lo", "_hi", "_lsb", "_msb"):
            stem = stem.removesuffix(suffix)
        joined.setdefault(stem, []).append((low, width))
    return joined


def our_fields(command: Command) -> dict[str, list[tuple[int, int]]]:
    named = {"address": "addr", "stride": "addr", "skip": "addr"}
    addressed = command.name == "SET_DMA0_LEN"
    return {
        "addr" if addressed else named.get(item.name, item.name): [
            (piece.low, piece.width) for piece in item.slices
        ]
        for item in command.fields
    }


@pytest.mark.parametrize(("arch", "family"), [(Arch.U65, "u65"), (Arch.U85, "u85")])
class TestConformance:
    def test_commands(self, headers: dict[str, Any], arch: Arch, family: str) -> None:
        ours = {
            f"NPU_{command.name}": ("cmd1" if command.words == 2 else "cmd0", command.key & 0x3FF)
            for command in instruction_set(arch).commands
        }
        rows = headers[family]["cmds"]
        assert ours == {name: (row["cmd"], row["code"]) for name, row in rows.items()}

    def test_fields(self, headers: dict[str, Any], arch: Arch, family: str) -> None:
        for command in instruction_set(arch).commands:
            row = headers[family]["cmds"][f"NPU_{command.name}"]
            assert our_fields(command) == header_fields(row), command.name

    def test_sizes_less_one(self, headers: dict[str, Any], arch: Arch, family: str) -> None:
        for command in instruction_set(arch).commands:
            names = [field[0] for field in headers[family]["cmds"][f"NPU_{command.name}"]["fields"]]
            for item in command.fields:
                less_one = f"{item.name}_m1" in names or f"{item.name}_lsb" in names
                assert item.bias == int(less_one), f"{command.name} {item.name}"

    def test_enumerations(self, headers: dict[str, Any], arch: Arch, family: str) -> None:
        enums = headers[family]["enums"]
        for command in instruction_set(arch).commands:
            fields = headers[family]["cmds"][f"NPU_{command.name}"]["fields"]
            theirs = {name: enums[enum] for name, _, _, enum in fields if enum}
            ours = {
                item.name: {str(member.value): member.name for member in item.enum}
                for item in command.fields
                if item.enum is not None
            }
            assert ours == theirs, command.name


def test_u55_is_u65_with_32_bit_addresses() -> None:
    """The U55 header differs from U65's in these things alone."""
    u55 = {command.name: command for command in instruction_set(Arch.U55).commands}
    u65 = {command.name: command for command in instruction_set(Arch.U65).commands}
    only_u65 = {"SET_PARALLEL_MODE", "SET_DMA0_SKIP0", "SET_DMA0_SKIP1"}
    only_u65 |= {
        f"SET_{kind}1_{part}" for kind in ("WEIGHT", "SCALE") for part in ("BASE", "LENGTH")
    }
    assert set(u65) - set(u55) == only_u65
    assert set(u55) - set(u65) == {f"SET_USER_DEFINED{index}" for index in range(8)}
    for name in set(u55) & set(u65):
        ours, theirs = our_fields(u55[name]), our_fields(u65[name])
        chip_select = ours.pop("custom_dma_cs", None)
        assert (chip_select == [(31, 1)]) == (name.removeprefix("SET_") in REGISTERS.split())
        if "addr" in theirs:
            assert theirs["addr"] == [(32, 32), (16, 8)]
            # Vela writes the sign of a stride into the parameter on U55 too.
            theirs = theirs if "STRIDE" in name else {"addr": [(32, 32)]}
        assert ours == theirs, name


def test_tables_are_quick_to_import(tmp_path: Path, slowness: float) -> None:
    """Rows are made at import, which every command line pays for. The first run compiles them."""
    code = (
        "import enum, numpy.typing, time, mizzen.diagnostics\n"
        "start = time.process_time()\n"
        "from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set\n"
        "[instruction_set(arch) for arch in Arch]\n"
        "print(time.process_time() - start)\n"
    )
    cached = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    run = [sys.executable, "-c", code]
    seconds = [
        float(subprocess.run(run, capture_output=True, check=True, text=True, env=cached).stdout)
        for _ in range(4)
    ]
    assert min(seconds) < 0.025 * slowness
