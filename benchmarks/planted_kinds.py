"""The mistakes that are planted into command streams: one row a kind.

Most change a field of a register for one operation, and set it back after it: what the compiler of
the stream would have sent with that one number wrong. The others are about commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from mizzen.diagnostics import MizzenError
from mizzen.isa import Instruction
from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set

Change = Callable[[int], int]
"""From the right number of a field to a wrong one."""


@dataclass(frozen=True)
class Segment:
    """An operation of a stream: settings and waits before it, and what is in force at it."""

    before: tuple[Instruction, ...]
    operation: Instruction
    state: dict[str, Instruction]


@dataclass(frozen=True)
class Planted:
    """A stream with a mistake: its operations, and the places of those that the mistake is in."""

    segments: tuple[Segment, ...]
    wrong: frozenset[int]


@dataclass(frozen=True)
class Kind:
    """A row.

    plant    makes the mistake at an operation; None where it cannot be made there
    is_wrong whether it is one even where no output shows it, as a missing wait
    """

    name: str
    plant: Callable[[Sequence[Segment], int, Arch], Planted | None]
    is_wrong: bool = False


def segments_of(instructions: Sequence[Instruction]) -> list[Segment]:
    """Cut a stream after each operation."""
    made: list[Segment] = []
    before: list[Instruction] = []
    state: dict[str, Instruction] = {}
    for each in instructions:
        if each.name in OPERATIONS:
            made.append(Segment(tuple(before), each, dict(state)))
            before = []
            continue
        before.append(each)
        if each.name.startswith("SET_"):
            state[each.name] = each
    return made


OPERATIONS = {"OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE", "OP_DMA_START"}


def up(by: int) -> Change:
    """Return what adds."""
    return lambda value: value + by


def to(value: int) -> Change:
    """Return what takes another number, or the one below where it is this."""
    return lambda now: value if now != value else max(0, value - 1)


def flip(now: int) -> int:
    """Return the other one of 0 and 1."""
    return 1 - now if now in (0, 1) else 0


def half(now: int) -> int:
    """Return half of a number."""
    return now // 2


def double(now: int) -> int:
    """Return twice a number."""
    return 2 * now


def _set(register: str, name: str, change: Change) -> Callable[..., Planted | None]:
    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        now = segments[place].state.get(register)
        if now is None or name not in now.values:
            return None
        if not _matters(register, segments[place].operation.name):
            return None
        value = change(int(now.values[name]))
        if value == int(now.values[name]):
            return None
        try:
            wrong = now.command(**{**now.values, name: value})
        except MizzenError:
            return None
        return _with(segments, place, wrong, now)

    return plant


def _matters(register: str, operation: str) -> bool:
    """Tell whether an operation of a kind looks at a register at all."""
    if "DMA0" in register:
        return operation == "OP_DMA_START"
    if operation == "OP_DMA_START":
        return False
    if any(word in register for word in ("IFM2", "OPA_", "OPB_", "SET_IFM_SCALE", "BROADCAST",
                                         "OP_SCALAR")):  # fmt: skip
        return operation == "OP_ELEMENTWISE"
    if any(word in register for word in ("WEIGHT", "SET_SCALE")):
        return operation in ("OP_CONV", "OP_DEPTHWISE")
    if any(word in register for word in ("KERNEL", "_PAD_")):
        return operation != "OP_ELEMENTWISE"
    return True


def _with(
    segments: Sequence[Segment], place: int, wrong: Instruction, right: Instruction
) -> Planted:
    """Set a register wrong before an operation, and right again after it."""
    made = list(segments)
    own = made[place]
    made[place] = replace(own, before=(*own.before, wrong))
    if place + 1 < len(made):
        following = made[place + 1]
        made[place + 1] = replace(following, before=(right, *following.before))
    return Planted(tuple(made), frozenset((place,)))


def _mode(modes: dict[int, int]) -> Callable[..., Planted | None]:
    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        operation = segments[place].operation
        if operation.name not in ("OP_POOL", "OP_ELEMENTWISE"):
            return None
        (name,) = operation.values
        other = modes.get(int(operation.values[name]))
        if other is None:
            return None
        return _instead(segments, place, operation.command(**{name: other}))

    return plant


def _instead(segments: Sequence[Segment], place: int, operation: Instruction) -> Planted:
    made = list(segments)
    made[place] = replace(made[place], operation=operation)
    return Planted(tuple(made), frozenset((place,)))


def _other_command(names: dict[str, str]) -> Callable[..., Planted | None]:
    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        other = names.get(segments[place].operation.name)
        if other is None:
            return None
        command = instruction_set(arch)[other]
        return _instead(
            segments, place, command(**{each.name: max(0, each.minimum) for each in command.fields})
        )

    return plant


def _without_wait(name: str, operation: str = "") -> Callable[..., Planted | None]:
    """Leave a wait out; that of transfers for operations is needed, others may be for nothing."""

    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        own = segments[place]
        if operation not in ("", own.operation.name):
            return None
        kept = tuple(each for each in own.before if each.name != name)
        if kept == own.before:
            return None
        made = list(segments)
        made[place] = replace(own, before=kept)
        return Planted(tuple(made), frozenset((place,)))

    return plant


def _weaker_wait(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
    own = segments[place]
    made: list[Instruction] = []
    for each in own.before:
        if each.name == "OP_DMA_WAIT":
            ((name, now),) = each.values.items()
            made.append(each.command(**{name: int(now) + 1}))
        else:
            made.append(each)
    if tuple(made) == own.before:
        return None
    segments = list(segments)
    segments[place] = replace(own, before=tuple(made))
    return Planted(tuple(segments), frozenset((place,)))


def _left_out(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
    """Leave the operation's command out, and not its settings."""
    if place + 1 == len(segments):
        return None
    made = list(segments)
    following = made[place + 1]
    made[place + 1] = replace(following, before=(*made[place].before, *following.before))
    del made[place]
    return Planted(tuple(made), frozenset(range(place, len(made))))


def _swapped(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
    """Let an operation run before the one that it follows."""
    if place == 0 or "OP_DMA_START" in (segments[place].operation.name,
                                        segments[place - 1].operation.name):  # fmt: skip
        return None
    made = list(segments)
    first, second = made[place - 1], made[place]
    wanted = [each for each in second.state.values() if first.state.get(each.name) != each]
    back = [each for each in first.state.values() if second.state.get(each.name) != each]
    following = [second.state[each.name] for each in back if each.name in second.state]
    waits = [each for each in (*first.before, *second.before) if not each.name.startswith("SET_")]
    settled = [each for each in first.before if each.name.startswith("SET_")]
    made[place - 1] = replace(second, before=(*settled, *wanted, *waits))
    made[place] = replace(first, before=tuple(back))
    if place + 1 < len(made):
        made[place + 1] = replace(made[place + 1], before=(*following, *made[place + 1].before))
    return Planted(tuple(made), frozenset((place - 1, place)))


def _never_set(register: str) -> Callable[..., Planted | None]:
    """Leave out the first setting of a register; the operation after it has none."""

    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        own = segments[place]
        first = all(register not in each.state for each in segments[:place])
        if not first or all(each.name != register for each in own.before):
            return None
        if not _matters(register, own.operation.name):
            return None
        made = list(segments)
        made[place] = replace(own, before=tuple(e for e in own.before if e.name != register))
        return Planted(tuple(made), frozenset((place,)))

    return plant


def _not_set(register: str) -> Callable[..., Planted | None]:
    """Leave out a later setting of a register: what the operation before had stays."""

    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        own = segments[place]
        seen = [each.state[register] for each in segments[:place] if register in each.state]
        if not seen or all(each.name != register for each in own.before):
            return None
        if not _matters(register, own.operation.name):
            return None
        return _with(segments, place, seen[-1], own.state[register])

    return plant


def _extra(name: str) -> Callable[..., Planted | None]:
    def plant(segments: Sequence[Segment], place: int, arch: Arch) -> Planted | None:
        if name not in instruction_set(arch):
            return None
        command = instruction_set(arch)[name]
        made = list(segments)
        extra = command(**{each.name: max(0, each.minimum) for each in command.fields})
        made[place] = replace(made[place], before=(*made[place].before, extra))
        return Planted(tuple(made), frozenset((place,)))

    return plant


Row = tuple[str, str, str, Change]
"""Name of a kind, register, field, and how it is wrong."""


def _of_maps() -> list[Row]:
    registers: list[Row] = []
    for prefix in ("IFM", "IFM2", "OFM"):
        name = f"SET_{prefix}"
        registers += [
            (f"{prefix} region", f"{name}_REGION", "region", to(2)),
            (f"{prefix} among constants", f"{name}_REGION", "region", to(0)),
            (f"{prefix} address, 16 up", f"{name}_BASE0", "address", up(16)),
            (f"{prefix} address, an element up", f"{name}_BASE0", "address", up(1)),
            (f"{prefix} row stride", f"{name}_STRIDE_Y", "stride", up(16)),
            (f"{prefix} column stride", f"{name}_STRIDE_X", "stride", half),
            (f"{prefix} channel stride", f"{name}_STRIDE_C", "stride", up(16)),
            (f"{prefix} tile's height", f"{name}_HEIGHT0_M1", "height", half),
            (f"{prefix} tile's width", f"{name}_WIDTH0_M1", "width", half),
            (f"{prefix} sign", f"{name}_PRECISION", "activation_type", flip),
            (f"{prefix} size of elements", f"{name}_PRECISION", "activation_precision", to(1)),
            (f"{prefix} format", f"{name}_PRECISION", "activation_format", flip),
            (f"{prefix} storage", f"{name}_PRECISION", "activation_storage", to(1)),
            (f"{prefix} zero point", f"{name}_ZERO_POINT", "zero_point", up(1)),
        ]
    return [
        *registers,
        ("IFM depth", "SET_IFM_DEPTH_M1", "depth", up(1)),
        ("IFM depth, half", "SET_IFM_DEPTH_M1", "depth", half),
        ("IFM upscaling", "SET_IFM_UPSCALE", "mode", to(1)),
        ("padding above", "SET_IFM_PAD_TOP", "pad", flip),
        ("padding left", "SET_IFM_PAD_LEFT", "pad", flip),
        ("padding right", "SET_IFM_PAD_RIGHT", "pad", up(1)),
        ("padding below", "SET_IFM_PAD_BOTTOM", "pad", up(1)),
        ("operand that is scaled", "SET_IFM_PRECISION", "scale_mode", to(1)),
        ("OFM width", "SET_OFM_WIDTH_M1", "width", up(-1)),
        ("OFM height", "SET_OFM_HEIGHT_M1", "height", up(-1)),
        ("OFM height, a row more", "SET_OFM_HEIGHT_M1", "height", up(1)),
        ("OFM depth", "SET_OFM_DEPTH_M1", "depth", up(-1)),
        ("scale of channels or of all", "SET_OFM_PRECISION", "scale_mode", flip),
        ("rounding", "SET_OFM_PRECISION", "round_mode", to(2)),
        ("OFM transposed", "SET_OFM_PRECISION", "activation_transpose", to(1)),
        ("OFM reversed", "SET_OFM_PRECISION", "activation_reverse", to(2)),
    ]


def _of_work() -> list[Row]:
    return [
        ("block, width odd", "SET_OFM_BLK_WIDTH_M1", "width", up(1)),
        ("block, height too large", "SET_OFM_BLK_HEIGHT_M1", "height", to(32)),
        ("block, depth", "SET_OFM_BLK_DEPTH_M1", "depth", up(4)),
        ("block, depth twice", "SET_OFM_BLK_DEPTH_M1", "depth", double),
        ("kernel width", "SET_KERNEL_WIDTH_M1", "width", up(1)),
        ("kernel height", "SET_KERNEL_HEIGHT_M1", "height", up(1)),
        ("kernel height, less", "SET_KERNEL_HEIGHT_M1", "height", up(-1)),
        ("stride in x", "SET_KERNEL_STRIDE", "stride_x", up(1)),
        ("stride in y", "SET_KERNEL_STRIDE", "stride_y", up(1)),
        ("dilation in x", "SET_KERNEL_STRIDE", "dilation_x", flip),
        ("dilation in y", "SET_KERNEL_STRIDE", "dilation_y", flip),
        ("order of weights", "SET_KERNEL_STRIDE", "weight_order", flip),
        ("parts of the kernel", "SET_KERNEL_STRIDE", "decomposition", flip),
        ("accumulators, other type", "SET_ACC_FORMAT", "acc_format", flip),
        ("accumulators kept", "SET_ACC_FORMAT", "acc_input", to(1)),
        ("accumulators not written", "SET_ACC_FORMAT", "acc_output", flip),
        ("microblock", "SET_ACC_FORMAT", "microblock", to(5)),
        ("activation's table on or off", "SET_ACTIVATION", "activation_function", to(4)),
        ("table of another number", "SET_ACTIVATION", "table", up(1)),
        ("tanh in the place of none", "SET_ACTIVATION", "activation_function", to(3)),
        ("table 3 in the place of another", "SET_ACTIVATION", "activation_function", to(19)),
        ("clip range", "SET_ACTIVATION", "activation_clip_range", to(3)),
        ("least value", "SET_ACTIVATION_MIN", "clip_boundary", up(40)),
        ("greatest value", "SET_ACTIVATION_MAX", "clip_boundary", half),
        ("weights' region", "SET_WEIGHT_REGION", "region", to(1)),
        ("weights' address", "SET_WEIGHT_BASE", "address", up(16)),
        ("weights' length, less", "SET_WEIGHT_LENGTH", "length", half),
        ("weights' length, none", "SET_WEIGHT_LENGTH", "length", to(0)),
        ("records' region", "SET_SCALE_REGION", "region", to(0)),
        ("records' address", "SET_SCALE_BASE", "address", up(16)),
        ("records' length", "SET_SCALE_LENGTH", "length", half),
        ("weights' format", "SET_WEIGHT_FORMAT", "weight_format", flip),
        ("weights' sparsity", "SET_WEIGHT_FORMAT", "weight_sparsity", flip),
    ]


def _of_scales_and_transfers() -> list[Row]:
    return [
        ("output's scale", "SET_OFM_SCALE", "scale", half),
        ("output's scale, a bit", "SET_OFM_SCALE", "scale", up(1 << 24)),
        ("output's shift", "SET_OFM_SCALE", "shift", up(1)),
        ("output's rounding", "SET_OFM_SCALE", "round_mode", to(5)),
        ("first operand's scale, U65", "SET_OPA_SCALE", "scale", half),
        ("first operand's shift, U65", "SET_OPA_SCALE", "shift", up(1)),
        ("first operand's scale", "SET_IFM_SCALE", "scale", half),
        ("first operand's shift", "SET_IFM_SCALE", "shift", up(1)),
        ("first operand's double rounding", "SET_IFM_SCALE", "dbl_rnd", to(0)),
        ("second operand's scale", "SET_IFM2_SCALE", "scale", half),
        ("second operand's shift", "SET_IFM2_SCALE", "shift", up(1)),
        ("order of operands", "SET_IFM2_BROADCAST", "operand_order", flip),
        ("broadcast of rows", "SET_IFM2_BROADCAST", "broadcast_h", flip),
        ("broadcast of columns", "SET_IFM2_BROADCAST", "broadcast_w", flip),
        ("broadcast of channels", "SET_IFM2_BROADCAST", "broadcast_c", flip),
        ("scalar in the place of a map", "SET_IFM2_BROADCAST", "broadcast_constant", flip),
        ("broadcast of IFM2", "SET_IFM2_BROADCAST", "broadcast_mode", to(2)),
        ("broadcast of IFM", "SET_IFM_BROADCAST", "broadcast_mode", to(1)),
        ("scalar", "SET_OP_SCALAR", "scalar", up(1)),
        ("end of the input's banks", "SET_IFM_IB_END", "ib_end", to(4)),
        ("start of the second input's banks", "SET_IFM2_IB_START", "ib_start", to(3)),
        ("start of accumulators", "SET_AB_START", "ab_start", to(44)),
        ("block dependency", "SET_BLOCKDEP", "blockdep", to(3)),
        ("transfer's source", "SET_DMA0_SRC", "address", up(16)),
        ("transfer's source region", "SET_DMA0_SRC_REGION", "region", to(1)),
        ("transfer's destination", "SET_DMA0_DST", "address", up(256)),
        ("transfer's destination region", "SET_DMA0_DST_REGION", "region", to(1)),
        ("transfer into the NPU or not", "SET_DMA0_DST_REGION", "region_mode", flip),
        ("transfer's length, less", "SET_DMA0_LEN", "length", half),
        ("transfer's length, more", "SET_DMA0_LEN", "length", up(1 << 16)),
    ]


def _of_commands() -> tuple[Kind, ...]:
    return (
        Kind("pooling or elementwise mode", _mode({0: 1, 1: 0, 2: 1, 3: 0, 4: 3, 8: 9, 9: 8})),
        Kind("sum in the place of a product", _mode({0: 1})),
        Kind("difference in the place of a sum", _mode({1: 2})),
        Kind("depthwise or not", _other_command(
            {"OP_CONV": "OP_DEPTHWISE", "OP_DEPTHWISE": "OP_CONV"})),
        Kind("pooling in the place of weights", _other_command(
            {"OP_CONV": "OP_POOL", "OP_DEPTHWISE": "OP_POOL"})),
        Kind("operation left out", _left_out),
        Kind("operations swapped", _swapped),
        Kind("no wait for transfers", _without_wait("OP_DMA_WAIT"), is_wrong=True),
        Kind("no wait for operations", _without_wait("OP_KERNEL_WAIT", "OP_DMA_START"),
             is_wrong=True),
        Kind("wait for fewer transfers", _weaker_wait, is_wrong=True),
        Kind("interrupt in the stream", _extra("OP_IRQ")),
        *(Kind(f"{register} never set", _never_set(register)) for register in (
            "SET_IFM_BASE0", "SET_OFM_WIDTH_M1", "SET_IFM_PRECISION", "SET_KERNEL_STRIDE",
            "SET_WEIGHT_LENGTH", "SET_OFM_SCALE", "SET_IFM2_BROADCAST", "SET_DMA0_LEN")),
        *(Kind(f"{register} as before", _not_set(register)) for register in (
            "SET_IFM_BASE0", "SET_OFM_BASE0", "SET_OFM_SCALE", "SET_IFM_ZERO_POINT",
            "SET_OFM_STRIDE_Y", "SET_WEIGHT_LENGTH", "SET_KERNEL_HEIGHT_M1")),
    )  # fmt: skip


def _kinds() -> Iterator[Kind]:
    for name, register, part, change in (*_of_maps(), *_of_work(), *_of_scales_and_transfers()):
        yield Kind(name, _set(register, part, change))
    yield from _of_commands()


KINDS = tuple(_kinds())


@dataclass
class Places:
    """Chooses operations of a stream in an order of its own."""

    seed: str
    chance: Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)

    def order(self, count: int) -> list[int]:
        """Return the numbers of all operations."""
        return self.chance.sample(range(count), count)
