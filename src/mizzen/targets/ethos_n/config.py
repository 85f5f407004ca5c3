"""The Ethos-N78 variants, their capabilities, and the configuration that a network is compiled for.

Options by name are those of Apache TVM's target ``ethos-n``.

Ref: Ethos-N driver stack 23.02 and 25.03, `CapabilitiesInternal.cpp` and `Support.hpp`
(`GetFwAndHwCapabilities`, `CompilationOptions`); Apache TVM v0.14.0, Ethos-N:
`EthosnCompilerConfigNode` (``relay.ext.ethos-n.options``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from mizzen.diagnostics import did_you_mean, fail
from mizzen.targets.ethos_n.commands_values import Strategy
from mizzen.targets.ethos_n.tensors import Shape

KIB = 1024
BRICK_GROUP_SHAPE: Shape = (1, 8, 8, 16)
"""The least that the DMA moves of a feature map in NHWCB."""
PATCH_SHAPE: Shape = (1, 4, 4, 1)
"""What the engines work on at a time."""


class Profile(Enum):
    """Whose rules hold: a release of Arm's driver stack, the value."""

    V23_02 = "23.02"
    """API 3.2.0, command stream 3.1: what Mizzen compiles for, and what Apache TVM integrates."""
    V25_03 = "25.03"
    """API 6.0.0: support queries only."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A product configuration.

    name         Mizzen's name
    arm_name     the Support Library's
    engines      compute engines (CE)
    igs, ogs     input and output generators of each engine
    emcs         SRAM banks of each engine
    sram_kib     SRAM over all banks
    ple_lanes    lanes of each engine's programmable layer engine
    """

    name: str
    arm_name: str
    engines: int
    igs: int
    ogs: int
    emcs: int
    sram_kib: int
    ple_lanes: int


def _row(
    tops: int, ples: int, engines: int, igs: int, ogs: int, emcs: int, sram_kib: int, lanes: int
) -> Variant:
    name = f"ethos-n78-{tops}tops-{ples}ple"
    arm_name = f"Ethos-N78_{tops}TOPS_{ples}PLE_RATIO"
    return Variant(name, arm_name, engines, igs, ogs, emcs, sram_kib, lanes)


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        #  TOPS PLE  CE IG OG EMC  KiB  lanes
        _row(1, 2, 2, 4, 4, 4, 448, 1),
        _row(1, 4, 2, 4, 4, 4, 448, 2),
        _row(2, 2, 4, 2, 4, 2, 768, 1),
        _row(2, 4, 4, 2, 4, 2, 768, 2),
        _row(4, 2, 4, 4, 4, 4, 1024, 2),
        _row(4, 4, 8, 2, 2, 2, 1024, 2),
        _row(8, 2, 8, 2, 4, 2, 2048, 2),
    )
}
"""All variants, by Mizzen's names."""


def find_variant(name: str) -> Variant:
    """Return a variant by Mizzen's name or by the Support Library's; E910 if there is not one."""
    for variant in VARIANTS.values():
        if name in (variant.name, variant.arm_name):
            return variant
    raise fail(
        "E910",
        f"a variant must be one of {', '.join(VARIANTS)}, not {name!r}",
        help=did_you_mean(name, VARIANTS),
    )


EMC_SMALLEST_BYTES = 32 * KIB
EMC_LARGEST_BYTES = 128 * KIB
EMC_STEP_BYTES = 16 * KIB
EMC_FURTHER_BYTES = (56 * KIB, 256 * KIB)
"""SRAM of one bank that may be asked for: a multiple of the step between the two, or a further."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a variant's hardware and firmware have; lengths in elements, SRAM in bytes.

    The numbers that all variants share stand here once.
    """

    sram_bytes: int
    engines: int
    ogs_per_engine: int
    igs_per_engine: int
    emcs_per_engine: int
    ple_lanes: int
    max_ple_bytes: int = 4096
    """Largest kernel of the programmable layer engine."""
    boundary_stripe_height: int = 8
    boundary_slots: int = 8
    central_slots: int = 8
    brick_group_shape: Shape = BRICK_GROUP_SHAPE
    patch_shape: Shape = PATCH_SHAPE
    mac_units_per_og: int = 8
    accumulators_per_mac_unit: int = 64
    weight_compression_version: int = 1
    activation_compression_version: int = 1
    is_nchw_supported: int = 1
    agent_window_size: int = 64
    max_mce_stripes_per_ple_stripe: int = 102
    max_ifm_and_weight_stripes_per_ple_stripe: int = 102

    @property
    def srams(self) -> int:
        """The number of SRAM banks."""
        return self.engines * self.emcs_per_engine

    @property
    def igs(self) -> int:
        """Input generators of all engines."""
        return self.engines * self.igs_per_engine

    @property
    def ogs(self) -> int:
        """Output generators of all engines."""
        return self.engines * self.ogs_per_engine

    @property
    def accumulators_per_og(self) -> int:
        """Accumulators of one output generator."""
        return self.mac_units_per_og * self.accumulators_per_mac_unit


def capabilities_of(variant: Variant, sram_bytes: int = 0) -> Capabilities:
    """Return a variant's capabilities; `sram_bytes` other than 0 takes the place of its own.

    E911 for an SRAM that the hardware cannot have; the message is the library's.
    """
    if sram_bytes:
        _require_sram(variant, sram_bytes)
    return Capabilities(
        sram_bytes=sram_bytes or variant.sram_kib * KIB,
        engines=variant.engines,
        ogs_per_engine=variant.ogs,
        igs_per_engine=variant.igs,
        emcs_per_engine=variant.emcs,
        ple_lanes=variant.ple_lanes,
    )


def _require_sram(variant: Variant, sram_bytes: int) -> None:
    # The library divides by the input generators here, of which there are as many as banks.
    each = sram_bytes // (variant.engines * variant.igs)
    low, high, step = EMC_SMALLEST_BYTES, EMC_LARGEST_BYTES, EMC_STEP_BYTES
    if each < low:
        problem = "size is smaller than the minimum allowed for this variant"
    elif each > high and each != max(EMC_FURTHER_BYTES):
        problem = "size is larger than the maximum allowed for this variant"
    elif each % step and each != min(EMC_FURTHER_BYTES):
        problem = "size per Emc is not a multiple of 16"
    else:
        return
    banks = variant.engines * variant.igs
    raise fail(
        "E911",
        f"User configured SRAM {problem}: {sram_bytes} bytes in {banks} banks",
        rule="GetFwAndHwCapabilities",
        help=f"give each of the {banks} banks {low} to {high} bytes in steps of {step}, "
        f"or {' or '.join(map(str, EMC_FURTHER_BYTES))} bytes",
    )


@dataclass(frozen=True, slots=True)
class _BlobForm:
    """The form of the capabilities as bytes: uint32 words, little-endian.

    version, words  the header's version, and the number of words
    command_stream  version (major, minor) of the first and of the last command stream understood
    """

    version: int
    words: int
    command_streams: tuple[int, int, int, int]


BLOB_FORMS: dict[Profile, _BlobForm] = {
    Profile.V23_02: _BlobForm(5, 33, (3, 0, 3, 1)),
    Profile.V25_03: _BlobForm(7, 30, (8, 0, 8, 0)),
}
HEADER_BYTES = 8


def encode_capabilities(capabilities: Capabilities, profile: Profile = Profile.V23_02) -> bytes:
    """Return the capabilities as the library's bytes, 132 of 23.02 and 120 of 25.03."""
    form = BLOB_FORMS[profile]
    words = [form.version, 4 * form.words, *form.command_streams, *_words(capabilities)]
    return struct.pack(f"<{form.words}I", *words[: form.words])


def _words(capabilities: Capabilities) -> list[int]:
    """Return the words from word 6 on."""
    return [
        capabilities.sram_bytes, capabilities.engines, capabilities.ogs_per_engine,
        capabilities.igs_per_engine, capabilities.emcs_per_engine,
        capabilities.max_ple_bytes, capabilities.boundary_stripe_height,
        capabilities.boundary_slots, capabilities.central_slots,
        *capabilities.brick_group_shape, *capabilities.patch_shape, capabilities.mac_units_per_og,
        capabilities.accumulators_per_mac_unit, capabilities.accumulators_per_og,
        capabilities.ple_lanes,
        capabilities.weight_compression_version, capabilities.activation_compression_version,
        capabilities.is_nchw_supported,
        capabilities.agent_window_size, capabilities.max_mce_stripes_per_ple_stripe,
        capabilities.max_ifm_and_weight_stripes_per_ple_stripe,
    ]  # fmt: skip


def decode_capabilities(blob: bytes, profile: Profile = Profile.V23_02) -> Capabilities:
    """Read the library's bytes; E912 unless their header is that of the profile."""
    form = BLOB_FORMS[profile]
    size = 4 * form.words
    version, said = struct.unpack_from("<2I", blob) if len(blob) >= HEADER_BYTES else (0, 0)
    if (version, said, len(blob)) != (form.version, size, size):
        raise fail(
            "E912",
            f"capabilities of release {profile.value} must have version {form.version} and "
            f"{size} bytes; these say version {version} and {said}, and have {len(blob)}",
            rule="m_FwAndHwCapabilities is not valid",
        )
    words = struct.unpack(f"<{form.words}I", blob)
    known = Capabilities(*words[6:11], ple_lanes=words[26])
    capabilities = replace(
        known,
        max_ple_bytes=words[11],
        boundary_stripe_height=words[12],
        boundary_slots=words[13],
        central_slots=words[14],
        brick_group_shape=words[15:19],
        patch_shape=words[19:23],
        mac_units_per_og=words[23],
        accumulators_per_mac_unit=words[24],
        weight_compression_version=words[27],
        activation_compression_version=words[28],
        is_nchw_supported=words[29],
    )
    if len(words) > 30:
        window, mce, ifm = words[30:33]
        capabilities = replace(
            capabilities,
            agent_window_size=window,
            max_mce_stripes_per_ple_stripe=mce,
            max_ifm_and_weight_stripes_per_ple_stripe=ifm,
        )
    return capabilities


@dataclass(frozen=True, slots=True)
class BlockConfig:
    """The part of a plane that the compute engines make at once, in elements."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


BLOCK_CONFIGS = tuple(
    BlockConfig(w, h) for w, h in ((16, 16), (32, 8), (8, 32), (16, 8), (8, 16), (8, 8))
)
"""Those that a compilation may use, in the order of preference."""
CHOOSABLE_STRATEGIES = tuple(Strategy)[:-1]
"""Strategies that can be switched off; X is always there."""


@dataclass(frozen=True, slots=True)
class CompilationOptions:
    """What the compiler may use.

    intermediate_compression  whether feature maps between passes may be compressed in DRAM
    winograd                  whether convolutions may use the Winograd algorithm
    strict_precision          whether every requantisation is a stage of its own
    """

    strategies: frozenset[Strategy] = frozenset(CHOOSABLE_STRATEGIES)
    block_configs: frozenset[BlockConfig] = frozenset(BLOCK_CONFIGS)
    intermediate_compression: bool = True
    winograd: bool = True
    strict_precision: bool = False


@dataclass(frozen=True, slots=True)
class VariantConfiguration:
    """What a network is compiled for: a variant, perhaps with another SRAM, and options."""

    variant: Variant
    sram_bytes: int = 0
    """0 for the variant's own."""
    options: CompilationOptions = field(default_factory=CompilationOptions)
    release: Profile = Profile.V23_02
    """The release that is asked, too, about what the one that is compiled for does not take."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities in force; E911 for an SRAM that the hardware cannot have."""
        return capabilities_of(self.variant, self.sram_bytes)


STRATEGIES: dict[str, Strategy] = {
    strategy.name.lower().replace("_", ""): strategy for strategy in CHOOSABLE_STRATEGIES
}
BLOCKS: dict[str, BlockConfig] = {f"block_config_{block}": block for block in BLOCK_CONFIGS}
COMPRESSION = "enable_intermediate_compression"
NO_WINOGRAD = "disable_winograd"
INLINE = "inline_non_compute_intensive_partitions"
RELEASE = "support_library"
"""Mizzen's own: a release of Arm's library to ask about what is not taken."""

ABSENT: dict[str, str] = {
    "dump_ram": "false",
    "initial_sram_dump": "false",
    "debug_dir": ".",
    "experimental_compiler": "false",
}
"""Options of which Mizzen has the default only: the simulator shows memory itself, and there is
one compiler."""

FLAGS: dict[str, bool] = {
    **dict.fromkeys(STRATEGIES, True),
    **dict.fromkeys(BLOCKS, True),
    COMPRESSION: True,
    NO_WINOGRAD: False,
    INLINE: True,
}
"""Options that are true or false, with their defaults."""

NAMES = ("variant", "sram_size", "tops", "ple_ratio", *FLAGS, *ABSENT, RELEASE)
"""All options."""

PRODUCT = "n78"
DEFAULT = VARIANTS["ethos-n78-1tops-2ple"]
TRUE, FALSE = ("true", "1"), ("false", "0")
VARIANT_NAME = re.compile(r"ethos-n78-(\d+)tops-(\d+)ple")


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What the options say.

    inline  whether regions without a compute-intensive operator go back to the CPU
    """

    configuration: VariantConfiguration
    inline: bool = True


def parse_options(options: Mapping[str, str], default: Variant = DEFAULT) -> TargetOptions:
    """Read options; what is left out is as in TVM, or as the default variant has it.

    E993 for an unknown option, E994 for a value that the option cannot have; E910 for a variant
    that there is not, E911 for its SRAM.
    """
    for name in options:
        if name not in NAMES:
            raise fail(
                "E993",
                f"an option must be one of {', '.join(NAMES)}, not {name!r}",
                help=did_you_mean(name, NAMES),
            )
    for name, only in ABSENT.items():
        if options.get(name, only).lower() != only:
            raise _wrong(name, options[name], f"{only}, which is all that Mizzen has")
    flags = {name: _flag(name, options, value) for name, value in FLAGS.items()}
    configuration = VariantConfiguration(
        _variant(options, default),
        _number("sram_size", options.get("sram_size", "0")),
        CompilationOptions(
            strategies=frozenset(strategy for name, strategy in STRATEGIES.items() if flags[name]),
            block_configs=frozenset(block for name, block in BLOCKS.items() if flags[name]),
            intermediate_compression=flags[COMPRESSION],
            winograd=not flags[NO_WINOGRAD],
        ),
        _release(options.get(RELEASE, Profile.V23_02.value)),
    )
    _ = configuration.capabilities  # E911 now, not when somebody first asks.
    return TargetOptions(configuration, flags[INLINE])


def _variant(options: Mapping[str, str], default: Variant) -> Variant:
    product = options.get("variant", PRODUCT)
    if product.lower() != PRODUCT:
        raise _wrong("variant", product, PRODUCT)
    parts = VARIANT_NAME.fullmatch(default.name)
    assert parts is not None
    tops = _number("tops", options.get("tops", parts[1]))
    ples = _number("ple_ratio", options.get("ple_ratio", parts[2]))
    return find_variant(f"ethos-n78-{tops}tops-{ples}ple")


def _release(text: str) -> Profile:
    known = {release.value: release for release in Profile}
    if text not in known:
        raise _wrong(RELEASE, text, " or ".join(known))
    return known[text]


def _flag(name: str, options: Mapping[str, str], default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in (*TRUE, *FALSE):
        raise _wrong(name, text, "true or false")
    return text.lower() in TRUE


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _wrong(name, text, "a whole number")
    return int(text)


def _wrong(name: str, text: str, wanted: str) -> Exception:
    return fail("E994", f"option {name} must be {wanted}, and is {text!r}")
