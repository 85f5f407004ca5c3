"""Read `vela.ini` files and put together the configuration in force.

A file holds sections `System_Config.NAME` (clock, memories and their speed) and
`Memory_Mode.NAME` (which memory holds what); a section may `inherit` another, whose values it
overrides. Several files are read as one, later values over earlier ones. Every combination that
the compiler or the hardware would refuse is refused here, with the choices there are.

Ref: Vela 5.2.0, OPTIONS.md ("Configuration File") and architecture_features.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeVar

from mizzen.diagnostics import Diagnostic, MizzenError, Severity, did_you_mean, fail
from mizzen.targets.ethos_u.machine.config import (
    ACCELERATORS,
    TRAITS,
    Accelerator,
    EthosUConfiguration,
    Memory,
    MemoryMode,
    MemoryTiming,
    Optimise,
    Port,
    Setting,
    SystemConfig,
    TensorAllocator,
)
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED, Section, Sections, read_files

SYSTEM_PREFIX = "System_Config."
MODE_PREFIX = "Memory_Mode."

SMALLEST_ALIGNMENT_BYTES = 16
"""Of a tensor: addresses of an NPU's feature maps are multiples of it."""

MOST = 1 << 40
"""Of any number of a configuration: clocks, bytes, cycles."""

ASKED = "asked for"
DEFAULT = "default"

ConfigFiles = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
"""One `vela.ini` file, several, or None for the bundled one."""

Choice = TypeVar("Choice")


_Names = tuple[str, str | None, str | None, str, int | None, tuple[str, ...]]
"""Accelerator, system configuration, memory mode, optimise, SRAM in bytes, operators to ignore."""


def resolve(
    accelerator: str,
    *,
    config: ConfigFiles = None,
    system_config: str | None = None,
    memory_mode: str | None = None,
    optimise: str = Optimise.PERFORMANCE.value,
    arena_cache_size: int | None = None,
    ignore_ops: Sequence[str] = (),
) -> EthosUConfiguration:
    """Put together the configuration in force; `arena_cache_size` is in bytes.

    What only the files of the package say is put together once.

    Raises E210 for an unknown accelerator, E211 and E212 for an unknown system configuration or
    memory mode, E213 to E217 for what is wrong with a file, E218 for a memory mode that the NPU
    cannot run, E219 for a file without names to take from it, E220 to E222 for the other options.
    """
    names = accelerator, system_config, memory_mode, optimise, arena_cache_size, tuple(ignore_ops)
    return _bundled(*names) if config is None else _resolved(config, *names)


@cache
def _bundled(*names: *_Names) -> EthosUConfiguration:
    return _resolved(None, *names)


def _resolved(config: ConfigFiles, *names: *_Names) -> EthosUConfiguration:
    accelerator, system_config, memory_mode, optimise, arena_cache_size, ignore_ops = names
    npu = find_accelerator(accelerator)
    strategy = _optimise(optimise)
    files = _names(config)
    if files != (BUNDLED,) and (system_config is None or memory_mode is None):
        raise _names_missing(files, system_config, memory_mode)
    sections = read_files(files)
    settings = _Settings()
    settings.choose("accelerator", npu.name, None)
    settings.choose("optimise", strategy.value, None)
    settings.choose("system_config", system_config, npu.traits.system_config)
    settings.choose("memory_mode", memory_mode, npu.traits.memory_mode)
    system = _system(sections, system_config or npu.traits.system_config, npu, settings)
    mode = _mode(sections, memory_mode or npu.traits.memory_mode, npu, system, settings)
    arena = _arena_cache_size(arena_cache_size, mode, npu, settings)
    return EthosUConfiguration(
        accelerator=npu,
        system=system,
        mode=mode,
        files=files,
        optimise=strategy,
        arena_cache_size_bytes=arena,
        ignore_ops=_ignored(ignore_ops),
        settings=tuple(settings.rows),
        warnings=_warnings(npu, system, mode, sections, settings, arena_cache_size),
    )


def with_placing(
    configuration: EthosUConfiguration, allocator: str, alignment_bytes: int
) -> EthosUConfiguration:
    """Return a configuration with another way to place tensors.

    E227 for an allocator that there is not, or an alignment that is no power of two from 16 on.
    """
    allocators = {each.value.lower(): each for each in TensorAllocator}
    if allocator.lower() not in allocators:
        names = [each.value for each in TensorAllocator]
        raise _unknown("E227", "the tensor allocator", allocator, names)
    if alignment_bytes < SMALLEST_ALIGNMENT_BYTES or alignment_bytes & (alignment_bytes - 1):
        raise fail(
            "E227",
            f"the alignment of tensors must be a power of two of at least "
            f"{SMALLEST_ALIGNMENT_BYTES} bytes, not {alignment_bytes}",
        )
    return replace(
        configuration,
        tensor_allocator=allocators[allocator.lower()],
        tensor_alignment_bytes=alignment_bytes,
    )


def find_accelerator(name: str) -> Accelerator:
    """Return the accelerator of that name. E210 if there is not one."""
    accelerator = ACCELERATORS.get(name.lower())
    if accelerator is None:
        raise _unknown("E210", "the accelerator", name, ACCELERATORS)
    return accelerator


def system_configs(sections: Sections) -> list[str]:
    """Name the system configurations that the files hold."""
    return _with_prefix(sections, SYSTEM_PREFIX)


def memory_modes(sections: Sections) -> list[str]:
    """Name the memory modes that the files hold."""
    return _with_prefix(sections, MODE_PREFIX)


def usable_memory_modes(
    sections: Sections, accelerator: Accelerator, system: SystemConfig
) -> list[str]:
    """Name the memory modes that an accelerator can run with a system configuration."""

    def usable(name: str) -> bool:
        try:
            mode = _read_mode(sections, name, _Settings())
            _check_mode(mode, accelerator, system)
        except MizzenError:
            return False
        return True

    return [name for name in memory_modes(sections) if usable(name)]


@dataclass(slots=True)
class _Settings:
    """Collects what was resolved, where it came from, and which keys were missing."""

    rows: list[Setting] = field(default_factory=list[Setting])
    missing: list[str] = field(default_factory=list[str])

    def choose(self, name: str, asked: str | None, default: str | None) -> None:
        """Keep a choice of the caller's, or the default where there was none."""
        value, source = (asked, ASKED) if asked is not None else (default, DEFAULT)
        if value is not None:
            self.add(name, value, source)

    def add(self, name: str, value: str | float, source: str) -> None:
        self.rows.append(Setting(name, value, source))

    def take(
        self, section: Section, key: str, convert: Callable[[str], Choice], default: Choice
    ) -> Choice:
        """Return the value of a key of a section, or the default, and keep where it came from."""
        entry = section.get(key)
        if entry is None:
            self.add(key, _plain(default), DEFAULT)
            return default
        try:
            value = convert(entry.value)
        except ValueError as reason:
            message = f"{key} must be {reason}, not {entry.value!r}"
            raise fail("E217", f"{entry.source}: {message}") from None
        self.add(key, _plain(value), entry.source)
        return value

    def expect(
        self, section: Section, key: str, convert: Callable[[str], Choice], default: Choice
    ) -> Choice:
        """Like `take`; a missing key is worth a warning."""
        if section.get(key) is None:
            self.missing.append(key)
        return self.take(section, key, convert, default)


def _plain(value: object) -> str | int | float:
    match value:
        case Memory() | Port():
            return value.value
        case bool() | int() | float() | str():
            return value
        case _:
            return "none"


def _names(config: ConfigFiles) -> tuple[str, ...]:
    if config is None:
        return (BUNDLED,)
    if isinstance(config, (str, os.PathLike)):
        return (os.fspath(config),)
    return tuple(os.fspath(name) for name in config)


def _with_prefix(sections: Sections, prefix: str) -> list[str]:
    names = sections.names()
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _optimise(name: str) -> Optimise:
    for strategy in Optimise:
        if strategy.value.lower() == name.lower():
            return strategy
    raise _unknown("E220", "optimise", name, [strategy.value for strategy in Optimise])


def _unknown(code: str, what: str, name: str, choices: Iterable[str]) -> MizzenError:
    """Make the error for a name that is not among the choices, with the closest one."""
    listed = list(choices)
    message = f"{what} must be {_one_of(listed)}, not {name!r}"
    return fail(code, message, help=did_you_mean(name, listed))


def _one_of(choices: Sequence[str]) -> str:
    if not choices:
        return "one that the files hold (they hold none)"
    if len(choices) == 1:
        return choices[0]
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _names_missing(
    files: Sequence[str], system_config: str | None, memory_mode: str | None
) -> MizzenError:
    asked = {"a system configuration": system_config, "a memory mode": memory_mode}
    missing = " and ".join(what for what, name in asked.items() if name is None)
    sections = read_files(files)
    choices = f"{_one_of(system_configs(sections))}; {_one_of(memory_modes(sections))}"
    return fail(
        "E219",
        f"with a configuration file of one's own, {missing} must be named too",
        rule="Vela 5.2.0 refuses a configuration file beside default names",
        help=f"the files hold {choices}",
    )


def _system(
    sections: Sections, name: str, accelerator: Accelerator, settings: _Settings
) -> SystemConfig:
    known = system_configs(sections)
    if name not in known:
        raise _unknown("E211", "the system configuration", name, _suited(known, accelerator))
    section = sections.resolve(SYSTEM_PREFIX + name)
    clock = settings.expect(section, "core_clock", positive, 1.0)
    ports = [_required_memory(section, key, settings) for key in ("axi0_port", "axi1_port")]
    read: dict[Memory, MemoryTiming] = {}
    for memory in ports:
        if memory not in read:
            read[memory] = _timing(section, memory, settings)
    return SystemConfig(name, clock, read[ports[0]], read[ports[1]])


def _required_memory(section: Section, key: str, settings: _Settings) -> Memory:
    if section.get(key) is None:
        choices = _one_of([memory.value for memory in Memory])
        raise fail("E217", f"{section.source}: {key} must be given, as {choices}")
    return settings.take(section, key, _memory, Memory.SRAM)


def _timing(section: Section, memory: Memory, settings: _Settings) -> MemoryTiming:
    name = memory.value
    return MemoryTiming(
        memory,
        clock_scale=settings.expect(section, f"{name}_clock_scale", positive, 1.0),
        ports=max(1, settings.take(section, f"{name}_ports_used", count, 1)),
        burst_bytes=settings.expect(section, f"{name}_burst_length", at_least_one, 1),
        read_latency_cycles=settings.expect(section, f"{name}_read_latency", count, 0),
        write_latency_cycles=settings.expect(section, f"{name}_write_latency", count, 0),
        max_reads=_optional_count(section, f"{name}_max_reads", settings),
        max_writes=_optional_count(section, f"{name}_max_writes", settings),
    )


def _optional_count(section: Section, key: str, settings: _Settings) -> int | None:
    return None if section.get(key) is None else settings.take(section, key, count, 0)


def _mode(
    sections: Sections,
    name: str,
    accelerator: Accelerator,
    system: SystemConfig,
    settings: _Settings,
) -> MemoryMode:
    if name not in memory_modes(sections):
        choices = usable_memory_modes(sections, accelerator, system)
        raise _unknown("E212", "the memory mode", name, choices)
    mode = _read_mode(sections, name, settings)
    try:
        _check_mode(mode, accelerator, system)
    except MizzenError as error:
        choices = usable_memory_modes(sections, accelerator, system)
        diagnostic = error.diagnostic
        help = f"with {accelerator.name} and {system.name}, choose {_one_of(choices)}"
        raise fail(diagnostic.code, diagnostic.message, rule=diagnostic.rule, help=help) from None
    return mode


def _read_mode(sections: Sections, name: str, settings: _Settings) -> MemoryMode:
    section = sections.resolve(MODE_PREFIX + name)
    size = None
    if section.get("arena_cache_size") is not None:
        size = settings.take(section, "arena_cache_size", at_least_one, 1)
    return MemoryMode(
        name,
        constants=settings.expect(section, "const_mem_area", _port, Port.AXI0),
        arena=settings.expect(section, "arena_mem_area", _port, Port.AXI0),
        cache=settings.expect(section, "cache_mem_area", _port, Port.AXI0),
        arena_cache_size_bytes=size,
    )


def _check_mode(mode: MemoryMode, accelerator: Accelerator, system: SystemConfig) -> None:
    """Refuse a memory mode that the hardware or the compiler cannot take. E218."""
    npu = accelerator.arch.value
    if not accelerator.traits.second_port_writes and Port.AXI1 in (mode.arena, mode.cache):
        raise fail(
            "E218",
            f"the memory mode must keep what {accelerator.name} writes on Axi0, but "
            f"{mode.name} has feature maps on Axi1, which {npu} can only read",
            rule=f"{npu} technical reference manual: AXI M1 is a read-only port",
        )
    constants, arena, cache = (
        system.behind(port).memory for port in (mode.constants, mode.arena, mode.cache)
    )
    one_port = mode.constants is mode.arena is mode.cache
    if arena not in (Memory.SRAM, Memory.DRAM):
        raise _misplaced(mode, system, "feature maps in Sram or Dram", arena)
    if cache is not Memory.SRAM:
        raise _misplaced(mode, system, "its cache in Sram", cache)
    if constants is Memory.SRAM and not one_port:
        wanted = "constants in Dram, OnChipFlash or OffChipFlash unless one port serves everything"
        raise _misplaced(mode, system, wanted, constants)


def _misplaced(mode: MemoryMode, system: SystemConfig, wanted: str, memory: Memory) -> MizzenError:
    return fail(
        "E218",
        f"the memory mode must have {wanted}, but {mode.name} has them in {memory.value} "
        f"with {system.name}",
        rule="Vela 5.2.0, architecture_features.py: memory areas of a memory mode",
    )


def _arena_cache_size(
    asked: int | None, mode: MemoryMode, accelerator: Accelerator, settings: _Settings
) -> int:
    largest = accelerator.traits.largest_address
    size, source = mode.arena_cache_size_bytes, "memory mode"
    if asked is not None:
        size, source = asked, ASKED
    if size is None:
        size, source = largest, f"{DEFAULT}: all that a port can address"
    if not 0 < size <= largest:
        raise fail(
            "E221",
            f"the arena cache size must be 1 to {largest} bytes on {accelerator.name}, not {size}",
        )
    if source != "memory mode":
        settings.rows = [setting for setting in settings.rows if setting.name != "arena_cache_size"]
        settings.add("arena_cache_size", size, source)
    return size


def _ignored(names: Sequence[str]) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(name.strip().upper() for name in names if name.strip()))
    for kind in kinds:
        if not kind.replace("_", "").isalnum() or not kind.isascii():
            message = "an operator type to keep on the CPU must be letters, digits and underscores"
            raise fail("E222", f"{message}, not {kind!r}")
    return kinds


def _warnings(
    accelerator: Accelerator,
    system: SystemConfig,
    mode: MemoryMode,
    sections: Sections,
    settings: _Settings,
    arena_cache_size: int | None,
) -> tuple[Diagnostic, ...]:
    warnings: list[Diagnostic] = []
    npu = accelerator.arch.value
    for other in TRAITS:
        if other is not accelerator.arch and system.name.startswith(_marker(other.value)):
            choices = _one_of(_suited(system_configs(sections), accelerator))
            message = (
                f"the system configuration {system.name} is for {other.value}, and "
                f"{accelerator.name} is an {npu}: cycles are estimated for that system"
            )
            warnings.append(_warning("W211", message, f"for {npu}, choose {choices}"))
    if settings.missing:
        message = (
            f"{system.name} and {mode.name} leave out {', '.join(settings.missing)}: defaults "
            "that no memory has are taken, and the estimates suffer"
        )
        warnings.append(_warning("W217", message, "add them to the file"))
    if arena_cache_size is not None and not mode.spills and _size_first(settings):
        message = f"with {mode.name}, an arena cache size has no effect on optimising for size"
        warnings.append(_warning("W221", message, "optimise for performance to plan within it"))
    return tuple(warnings)


def _size_first(settings: _Settings) -> bool:
    return any(
        setting.name == "optimise" and setting.value == Optimise.SIZE.value
        for setting in settings.rows
    )


def _warning(code: str, message: str, help: str) -> Diagnostic:
    return Diagnostic(code, message, Severity.WARNING, help=help)


def _marker(npu: str) -> str:
    """Return the beginning of Arm's names for an architecture's system configurations."""
    return npu.replace("-", "_")


def _suited(names: Sequence[str], accelerator: Accelerator) -> list[str]:
    """Choose the names written for an architecture; all if none are."""
    suited = [name for name in names if name.startswith(_marker(accelerator.arch.value))]
    return suited or list(names)


def positive(text: str) -> float:
    """Return a number above 0, and within reason. ValueError says what it must be."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST:
        raise ValueError(f"a number above 0, up to {MOST:g}")
    return value


def count(text: str) -> int:
    """Return a whole number. ValueError says what it must be."""
    return _whole(text, 0)


def at_least_one(text: str) -> int:
    """Return a whole number above 0. ValueError says what it must be."""
    return _whole(text, 1)


def _whole(text: str, least: int) -> int:
    digits = len(text) <= len(str(MOST)) and text.isascii() and text.isdigit()
    if not digits or not least <= int(text) <= MOST:
        raise ValueError(f"a whole number from {least} to {MOST}")
    return int(text)


def _memory(text: str) -> Memory:
    return _named(text, {memory.value: memory for memory in Memory})


def _port(text: str) -> Port:
    return _named(text, {port.value: port for port in Port})


def _named(text: str, choices: dict[str, Choice]) -> Choice:
    if text not in choices:
        raise ValueError(_one_of(list(choices)))
    return choices[text]
