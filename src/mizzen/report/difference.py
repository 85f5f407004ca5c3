"""What tells two artifacts of a network apart, and what a device in the field must be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mizzen.diagnostics import Device
from mizzen.report.versions import GrowthMeasure, LayerCost, Version


class Update(Enum):
    """What has to be sent to a device, the least first; the value is the user's word."""

    NOTHING = "nothing"
    CONSTANTS = "constants"
    """A model-only update: the same program, other constants."""
    MODEL = "model"
    """The whole network: another program, which the firmware runs as it is."""
    SCALES = "scales"
    """The whole network, whose inputs or outputs have other scales: firmware that takes them from
    the model runs it as it is."""
    FIRMWARE = "firmware"

    @property
    def rank(self) -> int:
        """Its place from the least on."""
        return list(Update).index(self)


class Change(Enum):
    """What became of a layer."""

    ADDED = "added"
    REMOVED = "removed"
    TO_CPU = "moved to the CPU"
    TO_NPU = "moved to the NPU"
    SHAPE = "other shapes"
    QUANTISATION = "other quantisation"
    WEIGHTS = "other weights"
    CODE = "other operations"
    """Of the NPU, so that what they compute with cannot be held side by side."""
    CYCLES = "other cycles"


@dataclass(frozen=True, slots=True)
class LayerChange:
    """A layer that is not what it was; `before` or `now` is None where there is none.

    shapes  before and now, empty where they are not known
    """

    changes: tuple[Change, ...]
    before: LayerCost | None
    now: LayerCost | None
    shapes: tuple[str, str] = ("", "")

    @property
    def layer(self) -> LayerCost:
        """The layer as it is now, or as it was where there is none now."""
        layer = self.now or self.before
        assert layer is not None, "a change is of a layer"
        return layer

    @property
    def cycles(self) -> tuple[int, int]:
        """Cycles of an inference, before and now."""
        before, now = self.before, self.now
        return 0 if before is None else before.cycles, 0 if now is None else now.cycles

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        before, now = self.cycles
        return {
            "kind": self.layer.kind,
            "name": self.layer.name,
            "index": self.layer.index,
            "changes": [change.name.lower() for change in self.changes],
            "device": {
                "before": _device(self.before),
                "now": _device(self.now),
            },
            "cycles": {"before": before, "now": now},
            "shape": {"before": self.shapes[0], "now": self.shapes[1]},
        }


def _device(layer: LayerCost | None) -> str | None:
    return None if layer is None else Device(layer.device).value


@dataclass(frozen=True, slots=True)
class Held:
    """A part of an artifact, before and now.

    what       ``command stream``, ``constants``, ``tables``, ``file``
    of         whose it is: ``NPU operator 0``; empty of the whole
    differing  bytes that are not what they were, with those of the longer one beyond the other
    ranges     what must be sent of it: first byte and one past the last of each run
    told       what differs in it, as people say it
    """

    what: str
    of: str
    before_bytes: int
    now_bytes: int
    differing: int
    ranges: tuple[tuple[int, int], ...]
    told: tuple[str, ...] = ()

    @property
    def sent_bytes(self) -> int:
        """Bytes of its ranges."""
        return sum(end - start for start, end in self.ranges)

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "part": self.what,
            "of": self.of,
            "bytes": {"before": self.before_bytes, "now": self.now_bytes},
            "differing_bytes": self.differing,
            "ranges": [list(run) for run in self.ranges],
            "told": list(self.told),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """Two artifacts of a network.

    versions    what each costs
    layers      those that changed
    parts       bytes by part, those that are the same too
    interface   what changed of inputs and outputs, as people say it
    forbids     why a smaller update is not possible, by the update that it asks for instead
    unknown     why it is not known what a device needs; empty where it is
    """

    versions: tuple[Version, Version]
    layers: tuple[LayerChange, ...]
    parts: tuple[Held, ...]
    interface: tuple[str, ...]
    forbids: Mapping[Update, tuple[str, ...]]
    unknown: str = ""

    @property
    def update(self) -> Update:
        """What a device must be sent: the most that anything asks for."""
        asked = [update for update, reasons in self.forbids.items() if reasons]
        return max(asked, key=lambda update: update.rank, default=Update.NOTHING)

    @property
    def is_same(self) -> bool:
        """Whether a device does the same with both."""
        return self.update is Update.NOTHING

    def of(self, what: str) -> tuple[Held, ...]:
        """Return the parts of one kind."""
        return tuple(part for part in self.parts if part.what == what)

    @property
    def send_bytes(self) -> int:
        """Bytes that must be sent: runs of constants, or the file."""
        if self.update is Update.NOTHING:
            return 0
        if self.update is Update.CONSTANTS:
            return sum(part.sent_bytes for part in self.of("constants"))
        return sum(part.now_bytes for part in self.of("file"))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not a model-only update, the gravest first."""
        grave = sorted(self.forbids, key=lambda update: -update.rank)
        return tuple(
            reason
            for update in grave
            if update.rank > Update.CONSTANTS.rank
            for reason in self.forbids[update]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        before, now = self.versions
        return {
            "before": {"model": before.model, "configuration": dict(before.configuration)},
            "now": {"model": now.model, "configuration": dict(now.configuration)},
            "same": self.is_same,
            "model_only": self.update in (Update.NOTHING, Update.CONSTANTS),
            "update": self.update.value,
            "send_bytes": self.send_bytes,
            "reasons": {
                update.value: list(reasons) for update, reasons in self.forbids.items() if reasons
            },
            "unknown": self.unknown or None,
            "measures": {
                measure.value: {"before": measure.of(before), "now": measure.of(now)}
                for measure in GrowthMeasure
            },
            "layers": [layer.as_dict() for layer in self.layers],
            "parts": [part.as_dict() for part in self.parts],
            "interface": list(self.interface),
        }
