"""What Linux demands of a command stream, one row a rule."""

from __future__ import annotations

from enum import Enum

STREAM = "ethosu_gem.c, ethosu_gem_cmdstream_copy_and_validate"
SIZES = "ethosu_gem.c, calc_sizes"
ELEMENTWISE = "ethosu_gem.c, calc_sizes_elemwise"
MAPS = "ethosu_gem.c, feat_matrix_validate and feat_matrix_length"
BUFFERS = "ethosu_gem.c, buffer_size"
TRANSFERS = "ethosu_gem.c, dma_length"
JOBS = "ethosu_job.c, ethosu_ioctl_submit_job"


OTHER_NPU = "run it with Arm's driver, which takes every NPU of the family"
OTHER_OPERATION = "compile with --ignore-ops and the operator's type, which leaves it to the CPU"
OTHER_MAKER = "correct the compiler of the stream, or compile the network with mizzen compile"
LESS = "give the buffer as many bytes, or keep the operator on the CPU with --ignore-ops"
LESS_SRAM = "compile with --arena-cache-size and the bytes of the SRAM"


class Rule(Enum):
    """A rule: what must hold, where the driver refuses what breaks it, and what to do."""

    NPU = ("the NPU must be an Ethos-U65 or U85, which the driver knows", "ethosu_drv.c", OTHER_NPU)
    WORDS = ("a command must be complete and its reserved bits zero", STREAM, OTHER_MAKER)
    ENDS = ("the stream must end with OP_STOP, its only one", STREAM, OTHER_MAKER)
    NO_INTERRUPT = ("OP_IRQ must not be used", STREAM, OTHER_MAKER)
    NO_BRANCH = ("OP_BRANCH must not be used", STREAM, OTHER_MAKER)
    NO_RESIZE = ("OP_RESIZE must not be used", STREAM, OTHER_OPERATION)
    CONVOLUTION = (
        "OP_CONV must have no parameter but, on U85, that weights are IFM2",
        STREAM,
        OTHER_MAKER,
    )
    LAYOUT = ("a feature map must lie in NHWC or NHCWB16", STREAM, OTHER_MAKER)
    NOT_TRANSPOSED = ("the OFM must not be transposed", STREAM, OTHER_OPERATION)
    REGISTERS = ("an operation's registers must be set before it", MAPS, OTHER_MAKER)
    TILES = ("each tile that an operation reaches must have a base", MAPS, OTHER_MAKER)
    WINDOW = ("padding must not exceed what the kernel covers", SIZES, OTHER_OPERATION)
    BUFFER = ("weights and scales must have region, base and length", BUFFERS, OTHER_MAKER)
    BROADCAST = (
        "an elementwise operation must have its broadcast set",
        ELEMENTWISE,
        OTHER_MAKER,
    )
    INDEXED = ("a transfer must not take its addresses from indices", STREAM, OTHER_OPERATION)
    TRANSFER = (
        "a transfer must have its region, address, length and sizes",
        TRANSFERS,
        OTHER_MAKER,
    )
    STRIDE = ("a stride must not lead before the transfer's begin", TRANSFERS, OTHER_OPERATION)
    ROOM = ("a region must be as long as the kernel says the stream reaches", JOBS, LESS)
    SRAM = (
        "region 2, the SRAM, must have room in the board's SRAM for what is in it",
        JOBS,
        LESS_SRAM,
    )

    def __init__(self, must: str, place: str, remedy: str) -> None:
        self.must = must
        self.place = place
        self.remedy = remedy

    @property
    def source(self) -> str:
        """Where the rule is written."""
        return f"Linux, drivers/accel/ethosu/{self.place}"
