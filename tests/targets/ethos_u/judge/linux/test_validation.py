"""Rules of Linux's driver: each broken by a stream, and networks that keep to all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.artifact.steps import NpuStep
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.judge.linux import LinuxReport, Rule, would_linux_take
from mizzen.targets.ethos_u.machine.commands import Arch, Instruction, encode, instruction_set
from mizzen.targets.ethos_u.machine.program import Program

DIGITS = Path(__file__).resolve().parents[5] / "examples" / "digits" / "digits.tflite"
ARCHS = {"ethos-u65-256": Arch.U65, "ethos-u85-256": Arch.U85}
U65, U85 = ARCHS

Commands = list[Instruction]
Edit = Callable[[Commands, Arch], object]


def added() -> bytes:
    """A network of one addition."""
    builder = NetworkBuilder()
    shape = (1, 8, 8, 16)
    operands = [builder.tensor(name, shape, np.int8, 0.5) for name in ("first", "second")]
    total = builder.tensor("total", shape, np.int8, 1.0)
    builder.operator("ADD", operands, [total], ("AddOptions", {}))
    return builder.finish(operands, [total])


@cache
def compiled(accelerator: str, of: str = "digits") -> Program:
    model = DIGITS if of == "digits" else added()
    artifact = mizzen.compile(model, accelerator, prove="off")
    (program,) = (step.program for step in artifact.steps if isinstance(step, NpuStep))
    return program


def edited(edit: Edit, accelerator: str, of: str = "digits") -> LinuxReport:
    program, arch = compiled(accelerator, of), ARCHS[accelerator]
    commands = list(program.instructions)
    edit(commands, arch)
    return would_linux_take(replace(program, words=encode(commands, arch), origins={}))


def place(commands: Commands, name: str) -> int:
    return next(i for i, command in enumerate(commands) if command.command.name == name)


def made(arch: Arch, name: str, values: Mapping[str, int]) -> Instruction:
    """Make a command whose other fields are 0."""
    command = instruction_set(arch)[name]
    return command(**({item.name: 0 for item in command.fields} | dict(values)))


def before(operation: str, name: str, **values: int) -> Edit:
    """Put a command before the first operation of a name."""

    def edit(commands: Commands, arch: Arch) -> None:
        commands.insert(place(commands, operation), made(arch, name, values))

    return edit


def without(*names: str) -> Edit:
    """Leave out every command of a name."""

    def edit(commands: Commands, _: Arch) -> None:
        commands[:] = [each for each in commands if each.command.name not in names]

    return edit


def rules(report: LinuxReport) -> set[Rule]:
    return {refusal.rule for refusal in report.refusals}


@pytest.mark.parametrize("accelerator", ARCHS)
@pytest.mark.parametrize("of", ["digits", "sum"])
def test_what_is_compiled_keeps_to_the_rules_and_to_its_regions(accelerator: str, of: str) -> None:
    program = compiled(accelerator, of)
    report = would_linux_take(program)
    assert report.refusals == ()
    for region, end in report.region_bytes.items():
        assert end <= program.region_bytes[region] < end + 64


def transfer(**registers: dict[str, int]) -> Edit:
    """Put a transfer with the given registers before the end."""

    def edit(commands: Commands, arch: Arch) -> None:
        values: dict[str, dict[str, int]] = {
            "SET_DMA0_SRC_REGION": {"region": 0},
            "SET_DMA0_SRC": {"address": 0},
            "SET_DMA0_DST_REGION": {"region": 1},
            "SET_DMA0_DST": {"address": 0},
            "SET_DMA0_LEN": {"length": 16},
            **registers,
        }
        settings = [made(arch, name, fields) for name, fields in values.items() if fields]
        commands[-1:-1] = [*settings, made(arch, "OP_DMA_START", {})]

    return edit


BROKEN: dict[tuple[Rule, str], tuple[Edit, str]] = {
    (Rule.NO_INTERRUPT, U65): (before("OP_CONV", "OP_IRQ", mask=0), "OP_IRQ"),
    (Rule.NO_BRANCH, U85): (
        before("OP_CONV", "OP_BRANCH", branch_cond=0, branch_target=0),
        "OP_BRANCH",
    ),
    (Rule.NO_RESIZE, U85): (before("OP_STOP", "OP_RESIZE", resize_mode=0), "OP_RESIZE"),
    (Rule.ENDS, U65): (without("OP_STOP"), ""),
    (Rule.ENDS, U85): (before("OP_CONV", "OP_STOP", mask=0), "OP_STOP"),
    (Rule.NOT_TRANSPOSED, U85): (
        before("OP_CONV", "SET_OFM_PRECISION", activation_transpose=1),
        "SET_OFM_PRECISION",
    ),
    (Rule.REGISTERS, U65): (without("SET_IFM_STRIDE_Y"), "OP_CONV"),
    (Rule.REGISTERS, U85): (without("SET_KERNEL_STRIDE"), "OP_CONV"),
    (Rule.TILES, U65): (without("SET_OFM_BASE0"), "OP_CONV"),
    (Rule.BUFFER, U65): (without("SET_SCALE_LENGTH"), "OP_CONV"),
    (Rule.BUFFER, U85): (without("SET_WEIGHT_REGION"), "OP_CONV"),
    (Rule.WINDOW, U65): (before("OP_CONV", "SET_IFM_PAD_BOTTOM", pad=100), "OP_CONV"),
    (Rule.INDEXED, U85): (
        transfer(SET_DMA0_SRC_REGION={"region": 0, "idx_mode": 1}), "SET_DMA0_SRC_REGION",
    ),
    (Rule.TRANSFER, U65): (
        transfer(SET_DMA0_SRC_REGION={"region": 0, "stride_mode": 2}),
        "OP_DMA_START",
    ),
    (Rule.TRANSFER, U85): (
        transfer(SET_DMA0_SRC_REGION={"region": 0, "stride_mode": 1},
                 SET_DMA0_SIZE0={"size": 0}),
        "OP_DMA_START",
    ),
    (Rule.STRIDE, U85): (
        transfer(SET_DMA0_SRC_REGION={"region": 0, "stride_mode": 1},
                 SET_DMA0_SIZE0={"size": 2}, SET_DMA0_SRC_STRIDE0={"stride": -64}),
        "OP_DMA_START",
    ),
    (Rule.ROOM, U65): (before("OP_CONV", "SET_IFM_BASE0", address=1 << 20), ""),
    (Rule.ROOM, U85): (before("OP_CONV", "SET_WEIGHT_LENGTH", length=1 << 20), ""),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "edit"), BROKEN.items(), ids=[f"{rule.name}-{npu}" for rule, npu in BROKEN]
)
def test_a_stream_that_breaks_a_rule(case: tuple[Rule, str], edit: tuple[Edit, str]) -> None:
    (rule, accelerator), (change, command) = case, edit
    report = edited(change, accelerator)
    refusals = [refusal for refusal in report.refusals if refusal.rule is rule]
    assert refusals, report.refusals
    assert command in {refusal.command for refusal in refusals}


def test_elementwise_operations_say_their_broadcast() -> None:
    report = edited(without("SET_IFM2_BROADCAST"), U65, "sum")
    assert Rule.BROADCAST in rules(report)
    assert Rule.BROADCAST in rules(edited(without("SET_IFM_BROADCAST"), U85, "sum"))


def with_words(edit: Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.uint32]]) -> LinuxReport:
    program = compiled(U65)
    return would_linux_take(replace(program, words=edit(program.words.copy())))


def test_words_that_are_no_command() -> None:
    cut_off = with_words(lambda words: np.append(words[:-1], np.uint32(0x4000)))
    assert rules(cut_off) == {Rule.WORDS, Rule.ENDS}
    reserved = with_words(lambda words: np.insert(words, 0, np.uint32(0x0C00)))
    assert rules(reserved) == {Rule.WORDS}


def test_parameters_that_a_convolution_has_not() -> None:
    def changed(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        words[words == 2] |= 1 << 16  # OP_CONV; no second word of this stream is 2
        return words

    assert Rule.CONVOLUTION in rules(with_words(changed))


def test_a_layout_that_is_none() -> None:
    def changed(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        words[words & 0xFFFF == 0x105] |= 3 << 22  # SET_IFM_PRECISION
        return words

    assert Rule.LAYOUT in rules(with_words(changed))


def test_u55_is_unknown_to_linux() -> None:
    report = would_linux_take(compiled_for_u55())
    assert [refusal.diagnostic.message for refusal in report.refusals] == [
        "Linux would refuse the stream: the NPU must be an Ethos-U65 or U85, which the driver "
        "knows, and this is for a U55"
    ]


def compiled_for_u55() -> Program:
    artifact = mizzen.compile(DIGITS, "ethos-u55-128", prove="off")
    (program,) = (step.program for step in artifact.steps if isinstance(step, NpuStep))
    return program


def test_region_2_is_the_sram() -> None:
    program = compiled(U65)
    needed = would_linux_take(program).region_bytes[2]
    assert would_linux_take(program, needed).refusals == ()
    (refusal,) = would_linux_take(program, needed - 1).refusals
    assert refusal.diagnostic.message == (
        "Linux would refuse the stream: region 2, the SRAM, must have room in the board's SRAM for "
        f"what is in it, and the stream reaches to byte {needed} of {needed - 1}"
    )
    assert refusal.diagnostic.rule == (
        "Linux, drivers/accel/ethosu/ethosu_job.c, ethosu_ioctl_submit_job"
    )


def test_every_rule_is_broken_by_a_stream_here() -> None:
    """`Rule` has no rule that nothing above breaks."""
    others = {Rule.NPU, Rule.WORDS, Rule.CONVOLUTION, Rule.LAYOUT, Rule.BROADCAST, Rule.SRAM}
    assert {rule for rule, _ in BROKEN} | others == set(Rule)


PAGE = Path(__file__).resolve().parents[5] / "docs" / "how-to" / "linux.md"


def test_the_page_has_every_rule() -> None:
    text = PAGE.read_text("utf-8")
    for rule in Rule:
        assert f"| `{rule.name}` | {rule.must} | {rule.remedy} |" in text
