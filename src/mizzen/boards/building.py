"""Make a board of the keys of its file; keys that do not fit one another are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.boards.board import (
    OF_BOARD,
    OF_MODE,
    Board,
    Cpu,
    Energy,
    Measured,
    MeasuredMemory,
    Memory,
    MemoryMode,
    Npu,
    Page,
    PortLimits,
    Ports,
    Role,
    Sdk,
    Uart,
    Window,
)
from mizzen.diagnostics import MizzenError
from mizzen.documents import Form, Syntax

if TYPE_CHECKING:
    from mizzen.boards.file_format import (
        BoardKeys,
        MeasuredKeys,
        MemoryKeys,
        ModeKeys,
        NpuKeys,
        PlacementKeys,
        PortsKeys,
        SdkKeys,
    )

FORM = Form("a board's file in TOML", Syntax.TOML, "E410", "E411", "E412")

KEYWORDS = frozenset({"ORIGIN", "org", "o", "LENGTH", "len", "l"})
"""What a region of a linker script cannot be called. Ref: GNU ld manual, 3.7, "MEMORY Command"."""

PRODUCTS = ("ethos-u55", "ethos-u65", "ethos-u85")
QCONFIG = 2
REGIONS = {
    "ethos-u55": (3, 0, 1, 1, 1, 1, 1, 1),
    "ethos-u65": (3, 2, 1, 1, 1, 1, 1, 1),
    "ethos-u85": (3, 0, 1, 1, 1, 1, 1, 1),
}
"""What Arm's driver sets where a board's software does not change it.

Ref: Ethos-U core driver 0.16, config_u55.h, config_u65.h, config_u85.h (NPU_QCONFIG,
NPU_REGIONCFG_0 to _7, AXI limits).
"""

PORTS = {
    "ethos-u55": Ports("ethos-u55", (PortLimits(32, 16, 0),) * 4, ()),
    "ethos-u65": Ports("ethos-u65", (PortLimits(64, 32, 0),) * 4, ()),
    "ethos-u85": Ports("ethos-u85", (PortLimits(12, 16, 2), PortLimits(64, 32, 2)), (0, 0, 4, 4)),
}


def build(keys: BoardKeys, file: str) -> Board:
    """Return the board that a file describes. E411 where its keys do not fit each other."""
    return _Building(keys, file).board()


class _Building:
    def __init__(self, keys: BoardKeys, file: str) -> None:
        self.keys = keys
        self.file = file
        self.names = tuple(memory.name for memory in keys.memory)

    def board(self) -> Board:
        """Return the board."""
        keys = self.keys
        self._require_names()
        return Board(
            name=keys.name,
            title=keys.title,
            cpu=Cpu(keys.cpu.core, keys.cpu.interrupts, keys.cpu.clock_hz, keys.cpu.qemu),
            memories=tuple(self._memory(at, memory) for at, memory in enumerate(keys.memory)),
            places=self._places("placement", keys.placement, OF_BOARD) if keys.placement else {},
            npus=tuple(self._npu(each) for each in (keys.npu, *keys.other_npu)),
            console=keys.uart and Uart(keys.uart.kind, keys.uart.base, keys.uart.alias),
            timing_adapters=tuple(
                Window(adapter.name, adapter.base, adapter.alias, adapter.size_bytes)
                for adapter in keys.timing_adapter
            ),
            modes=tuple(self._mode(at, mode) for at, mode in enumerate(keys.memory_mode)),
            ports=self._all_ports(),
            sdk=keys.sdk and _sdk(keys.sdk),
            page=keys.page
            and Page(**{name: text.strip() for name, text in vars(keys.page).items()}),
            measured=keys.measured and self._measured(keys.measured),
            energy=self._energy(),
        )

    def wrong(self, place: str, must: str, came: object) -> MizzenError:
        """Return the error for keys that do not fit each other."""
        return FORM.error(self.file, place, must, came)

    def _require_names(self) -> None:
        for at, name in enumerate(self.names):
            if name in self.names[:at]:
                raise self.wrong(f"memory[{at}].name", "be another than those before", repr(name))
            if name in KEYWORDS:
                must = f"be none of {', '.join(sorted(KEYWORDS))}, which linker scripts have"
                raise self.wrong(f"memory[{at}].name", must, repr(name))

    def _memory(self, at: int, keys: MemoryKeys) -> Memory:
        size_bytes = keys.size_kib << 10
        for key, base in (("base", keys.base), ("alias", keys.alias)):
            if base is not None and base + size_bytes > 1 << 32:
                raise self.wrong(f"memory[{at}].{key}", "leave room for its bytes", f"{base:#x}")
        return Memory(
            keys.name, keys.base, keys.alias, size_bytes, keys.kind, keys.writable, keys.npu
        )

    def _places(
        self, place: str, keys: PlacementKeys | ModeKeys, roles: tuple[Role, ...]
    ) -> dict[Role, str]:
        places = {role: str(getattr(keys, role.value)) for role in roles}
        for role, name in places.items():
            if name not in self.names:
                must = f"be one of {', '.join(self.names)}"
                raise self.wrong(f"{place}.{role.value}", must, repr(name))
        return places

    def _npu(self, keys: NpuKeys) -> Npu:
        for name in keys.accelerators or ():
            if not name.startswith(tuple(f"{product}-" for product in keys.products)):
                must = f"be of {', '.join(keys.products)}"
                raise self.wrong("npu.accelerators", must, repr(name))
        return Npu(
            address=keys.base,
            alias=keys.alias,
            interrupt=keys.irq,
            products=keys.products,
            accelerators=keys.accelerators or (),
            clock_hz=keys.clock_hz,
            driver=keys.driver,
        )

    def _energy(self) -> tuple[Energy, ...]:
        rows = [Energy(each.of, each.value, each.error, each.source) for each in self.keys.energy]
        for at, row in enumerate(rows):
            if row.of in [other.of for other in rows[:at]]:
                raise self.wrong(f"energy[{at}].of", "be there once", repr(row.of.value))
        return tuple(rows)

    def _measured(self, keys: MeasuredKeys) -> Measured:
        names = [memory.name for memory in keys.memory]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise self.wrong(f"measured.memory[{at}].name", "be there once", repr(name))
        memories = (
            MeasuredMemory(
                each.name, each.bytes_per_cycle, each.read_latency_cycles,
                each.write_latency_cycles, each.bytes_per_cycle_error, each.latency_error,
            )
            for each in keys.memory
        )  # fmt: skip
        return Measured(keys.accelerator, keys.system_config, keys.source, tuple(memories))

    def _mode(self, at: int, keys: ModeKeys) -> MemoryMode:
        places = self._places(f"memory_mode[{at}]", keys, OF_MODE)
        qconfig = QCONFIG if keys.qconfig is None else keys.qconfig
        regions = keys.regions or REGIONS[self.keys.npu.products[0]]
        return MemoryMode(keys.names, places, qconfig, regions)

    def _all_ports(self) -> tuple[Ports, ...]:
        """Return the port settings of every product: the file's, else those of Arm's driver."""
        own = {keys.product: self._ports(at, keys) for at, keys in enumerate(self.keys.ports)}
        return tuple(own.get(product, PORTS[product]) for product in PRODUCTS)

    def _ports(self, at: int, keys: PortsKeys) -> Ports:
        from mizzen.boards.file_format import PORT_SETTINGS, U85_PORTS

        is_u85 = keys.product == "ethos-u85"
        count = U85_PORTS if is_u85 else PORT_SETTINGS
        for key in ("reads", "writes", "beats"):
            if len(getattr(keys, key)) != count:
                raise self.wrong(
                    f"ports[{at}].{key}", f"have {count} numbers", len(getattr(keys, key))
                )
        attributes = keys.attributes or ()
        if len(attributes) != (PORT_SETTINGS if is_u85 else 0):
            must = f"have {PORT_SETTINGS} numbers" if is_u85 else "be left out for this product"
            raise self.wrong(f"ports[{at}].attributes", must, len(attributes))
        limits = zip(keys.reads, keys.writes, keys.beats, strict=True)
        return Ports(keys.product, tuple(PortLimits(*limit) for limit in limits), attributes)


def _sdk(keys: SdkKeys) -> Sdk:
    said = vars(keys)
    sections = {role: said.pop(f"{role.value}_section") for role in OF_MODE}
    return Sdk(**said, sections={role: name for role, name in sections.items() if name})
