"""What changed between two artifacts, and whether new constants alone make the old one the new.

Costs and layers are those of `versions`, constants of layers those that the simulator decodes. What
decides on the update are the bytes that a device loads (`loads`).
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.analysis.comparison.loads import Loads, interface_changes, loads_of
from mizzen.analysis.comparison.naming import with_origins
from mizzen.analysis.comparison.versions import version_of_artifact
from mizzen.analysis.cost import cost_report
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.program import OPERANDS, SETTINGS, ListedCommand
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.steps import CpuStep, NpuStep
from mizzen.diagnostics import Device, Diagnostic, MizzenError, Severity
from mizzen.report.difference import Change, Difference, Held, LayerChange, Update
from mizzen.report.versions import LayerCost, Version, layer_key

RANGE_HEAD_BYTES = 8
"""Address and length of a range, 32 bits each: a shorter gap is sent with what is around it."""

SHOWN = 3
"""Names of one kind that a reason lists."""

NUMBERS = frozenset({SETTINGS, "multipliers", "shifts", "table"})
"""What of an operation's constants follows from scales and zero points."""

NOTHING: Mapping[str, Array] = {}


def difference(before: Artifact, now: Artifact) -> Difference:
    """Say what changed from one artifact to another, and what a device must be sent."""
    named = _named(before, now)
    versions = version_of_artifact(named[0]), version_of_artifact(named[1])
    layers = tuple(_layers(*named, versions))
    breaking, scales = interface_changes(before, now)
    try:
        loads = loads_of(before), loads_of(now)
    except MizzenError as error:
        return _unknown(before, now, versions, layers, (*breaking, *scales), error)
    parts = tuple(_parts(before, now, *loads))
    forbids = {
        Update.FIRMWARE: (*breaking, *_for_firmware(*loads), *_for_board(before, now)),
        Update.SCALES: tuple(scales),
        Update.MODEL: tuple(_for_program(parts)),
        Update.CONSTANTS: tuple(
            part.of for part in parts if part.what == "constants" and part.differing
        ),
    }
    return Difference(versions, layers, parts, (*breaking, *scales), forbids)


def _named(before: Artifact, now: Artifact) -> tuple[Artifact, Artifact]:
    """Return both with layers by the same names: the model's, or else operations of the stream.

    An artifact without its report has those of the other one, where its operations are alike.
    """
    if (before.report is None) == (now.report is None):
        return before, now
    if before.report is None:
        known, lacking = now, before
    else:
        known, lacking = before, now
    lined_up = with_origins(lacking, known)
    is_same = _on_processor(lacking) == _on_processor(known)
    if lined_up.report is None or not any(lined_up.report.origins) or not is_same:
        lined_up, known = lacking, artifact_of(known.data, known.name)
    return (lined_up, known) if lacking is before else (known, lined_up)


def _on_processor(artifact: Artifact) -> list[tuple[str, ...]]:
    return [step.kinds if isinstance(step, CpuStep) else () for step in artifact.steps]


def _unknown(
    before: Artifact,
    now: Artifact,
    versions: tuple[Version, Version],
    layers: tuple[LayerChange, ...],
    interface: tuple[str, ...],
    error: MizzenError,
) -> Difference:
    """Return what is known of artifacts that no microcontroller loads as a sequence of calls."""
    file = held("file", "", before.data, now.data)
    is_same = unsealed(before.data, before.name) == unsealed(now.data, now.name)
    reasons = () if is_same else (error.diagnostic.message,)
    forbids = {Update.FIRMWARE: reasons}
    return Difference(versions, layers, (file,), interface, forbids, error.diagnostic.message)


def failures_of(found: Difference, allowed: Update, names: tuple[str, str]) -> Iterator[Diagnostic]:
    """Return an error where more must be sent than is allowed: E825.

    names  of the files, before and now
    """
    if found.update.rank <= allowed.rank:
        return
    before, now = names
    told = found.reasons or found.forbids[Update.CONSTANTS]
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    yield Diagnostic(
        "E825",
        f"from {before} to {now} a device may be sent {allowed.value}, and must be sent "
        f"{found.update.value}: {'; '.join(told[:SHOWN])}{more}",
        rule="docs/how-to/update-the-model.md",
        help=f"--allow {found.update.value} takes it"
        if found.update is not Update.FIRMWARE
        else "build the firmware again with the new network",
    )


def notes_of(found: Difference) -> Iterator[Diagnostic]:
    """Warn where it is not known what a device loads: W336."""
    if found.unknown:
        yield Diagnostic(
            "W336",
            "what a device must be sent is known of sequences of calls alone, and the whole file "
            f"is taken for it: {found.unknown}",
            Severity.WARNING,
            rule="docs/how-to/update-the-model.md",
        )


def _parts(before: Artifact, now: Artifact, ours: Loads, theirs: Loads) -> Iterator[Held]:
    commands = list(_commands(before, now))
    for place, whose in enumerate(dict.fromkeys((*ours.streams, *theirs.streams))):
        told = commands[place] if place < len(commands) else ()
        one, other = ours.streams.get(whose, b""), theirs.streams.get(whose, b"")
        yield held("command stream", whose, one, other, told if one != other else ())
    one, other = ("\n".join(each.tables).encode() for each in (ours, theirs))
    yield held("tables", "", one, other, tuple(_rows(ours.tables, theirs.tables)))
    for whose in dict.fromkeys((*ours.constants, *theirs.constants)):
        one, other = ours.constants.get(whose, b""), theirs.constants.get(whose, b"")
        if one or other:
            yield held("constants", whose, one, other)
    yield held("file", "", before.data, now.data)


def held(what: str, of: str, before: bytes, now: bytes, told: tuple[str, ...] = ()) -> Held:
    """Hold bytes against those of before."""
    both = min(len(before), len(now))
    odd = np.frombuffer(before, np.uint8, both) != np.frombuffer(now, np.uint8, both)
    places = np.concatenate([np.flatnonzero(odd), np.arange(both, len(now), dtype=np.intp)])
    differing = int(np.count_nonzero(odd)) + abs(len(before) - len(now))
    return Held(what, of, len(before), len(now), differing, tuple(_runs(places)), told)


def _runs(places: npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Return ascending places as runs: the first, and one past the last; near ones are one."""
    if len(places):
        starts = np.flatnonzero(np.diff(places) > RANGE_HEAD_BYTES) + 1
        for run in np.split(places, starts):
            yield int(run[0]), int(run[-1]) + 1


def _commands(before: Artifact, now: Artifact) -> Iterator[tuple[str, ...]]:
    """Return, for each NPU operator of both, the commands that differ, the most frequent first."""
    sides = ([step for step in each.steps if isinstance(step, NpuStep)] for each in (before, now))
    for one, other in zip(*sides, strict=False):
        try:
            ours, theirs = ([_line(line) for line in each.view.listing.lines]
                            for each in (one, other))  # fmt: skip
        except MizzenError:  # a family without a listing
            yield ()
            continue
        yield tuple(_counted(ours, theirs))


def _line(command: ListedCommand) -> tuple[str, str]:
    """Return a command's name and all of it; of an operation the name is all."""
    return command.name, command.name if command.is_operation else str(command)


def _counted(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> Iterator[str]:
    if len(ours) != len(theirs):
        yield f"{len(theirs)} commands instead of {len(ours)}"
    # Lining up takes the square of what is long, and what has the same names is in line.
    in_line = [name for name, _ in ours] == [name for name, _ in theirs]
    counts = Counter(_in_place(ours, theirs) if in_line else _lined_up(ours, theirs))
    yield from (f"{count} {name}" for name, count in counts.most_common())


def _in_place(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Return the names of commands that are not what the one in the same place is."""
    return (other[0] for one, other in zip(ours, theirs, strict=True) if one != other)


def _lined_up(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Return the names of commands that one side has and the other has not."""
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag != "equal":
            yield from (name for name, _ in theirs[first:last] or ours[start:end])


def _rows(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    """Return what kinds of rows differ."""
    left, right = Counter(ours), Counter(theirs)
    kinds = _kinds(left - right) | _kinds(right - left)
    yield from (f"{count} {kind}" for kind, count in kinds.most_common())


def _kinds(rows: Counter[str]) -> Counter[str]:
    """Count rows by what they are of: a tensor, an NPU call."""
    return Counter(row.split(": ")[0].rstrip("0123456789 ") for row in rows.elements())


def _for_program(parts: Sequence[Held]) -> Iterator[str]:
    """Return why new constants alone do not do: what of the program differs."""
    for part in parts:
        if part.what in ("command stream", "tables") and part.differing:
            whose = f" of {part.of}" if part.of else ""
            told = ", ".join(part.told[:SHOWN])
            more = ", ..." if len(part.told) > SHOWN else ""
            yield f"the {part.what}{whose} differ{'' if part.what == 'tables' else 's'}" + (
                f" ({told}{more})" if told else ""
            )
    sized = [
        part for part in parts if part.what == "constants" and part.before_bytes != part.now_bytes
    ]
    for part in sized[:SHOWN]:
        sizes = f"{part.now_bytes:,} bytes instead of {part.before_bytes:,}"
        yield f"constants of {part.of} are {sizes}"
    if len(sized) > SHOWN:
        yield f"{len(sized) - SHOWN} more constants have other sizes"


def _for_firmware(ours: Loads, theirs: Loads) -> Iterator[str]:
    """Return why firmware must be built again."""
    if ours.form != theirs.form:
        yield f"a runtime of {ours.form} does not open {theirs.form}"
    if theirs.arena_bytes > ours.arena_bytes:
        yield f"the arena is {theirs.arena_bytes:,} bytes instead of {ours.arena_bytes:,}"
    if theirs.fast_bytes > ours.fast_bytes:
        yield f"the fast memory is {theirs.fast_bytes:,} bytes instead of {ours.fast_bytes:,}"
    if ours.form == theirs.form and (missing := sorted(theirs.kernels - ours.kernels)):
        yield f"the firmware must have {', '.join(missing)}"
    if bool(theirs.streams) and not ours.streams:
        yield "the firmware must drive the NPU"


def _for_board(before: Artifact, now: Artifact) -> Iterator[str]:
    """Return what of the board is another: its NPU, or what its memories are for."""
    asked = [(each.accelerator, _memory_mode(each)) for each in (before, now)]
    for one, other in zip(*asked, strict=True):
        if one is not None and other is not None and one != other:
            yield f"it is for {other} instead of {one}"


def _memory_mode(artifact: Artifact) -> str | None:
    return None if artifact.report is None else artifact.report.configuration.get("memory_mode")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of a layer besides its cost.

    operations        what each is called, with names and shapes of what it computes with; empty
                      where it is not known which are the layer's
    numbers, weights  digests of that: what follows from scales, and the rest
    """

    shape: str
    operations: tuple[str, ...]
    numbers: str
    weights: str


_NO_FACTS = _Facts("", (), "", "")


def _layers(
    before: Artifact, now: Artifact, versions: tuple[Version, Version]
) -> Iterator[LayerChange]:
    """Return the layers that changed, in the order that they have now.

    Where other layers are computed by other operations, so may be one with as many as before.
    """
    ours, theirs = ({layer_key(layer): layer for layer in each.layers} for each in versions)
    facts = [
        _facts(artifact, version) for artifact, version in zip((before, now), versions, strict=True)
    ]
    kinds = [[known.operations for known in each.values()] for each in facts]
    is_same_way = kinds[0] == kinds[1]
    for key in dict.fromkeys((*theirs, *ours)):
        one, other = ours.get(key), theirs.get(key)
        known = facts[0].get(key, _NO_FACTS), facts[1].get(key, _NO_FACTS)
        changes = tuple(_changes(one, other, *known))
        if not is_same_way:  # another way to compute a layer has other numbers
            changes = tuple(
                Change.CODE if each is Change.QUANTISATION else each for each in changes
            )
        if changes:
            yield LayerChange(changes, one, other, (known[0].shape, known[1].shape))


def _changes(
    before: LayerCost | None, now: LayerCost | None, was: _Facts, is_: _Facts
) -> Iterator[Change]:
    if before is None or now is None:
        yield Change.ADDED if before is None else Change.REMOVED
        return
    if before.device is not now.device:
        yield Change.TO_CPU if now.device is Device.CPU else Change.TO_NPU
        return
    if was.shape != is_.shape:
        yield Change.SHAPE
        return
    if not was.operations or not is_.operations:
        return
    if was.operations != is_.operations:
        yield Change.CODE
        return
    if was.numbers != is_.numbers:
        yield Change.QUANTISATION
    if was.weights != is_.weights:
        yield Change.WEIGHTS
    if (was.numbers, was.weights) == (is_.numbers, is_.weights) and before.cycles != now.cycles:
        yield Change.CYCLES


@dataclass(slots=True)
class _Gathered:
    """What operations of one layer have, as they come."""

    shapes: list[str] = field(default_factory=list[str])
    operations: list[str] = field(default_factory=list[str])
    numbers: list[bytes] = field(default_factory=list[bytes])
    weights: list[bytes] = field(default_factory=list[bytes])

    def add(self, operation: str, constants: Mapping[str, Array]) -> None:
        """Take what an operation computes with."""
        held = {name: array for name, array in constants.items() if name != OPERANDS}
        self.operations.append(f"{operation} {[(n, array.shape) for n, array in held.items()]}")
        for name, array in held.items():
            digests = self.numbers if name in NUMBERS else self.weights
            digests.append(hashlib.sha256(array.tobytes()).digest())

    def facts(self, shape: str) -> _Facts:
        """Return what is known of the layer; its shape in the model, where that is known."""
        return _Facts(
            shape or "; ".join(self.shapes),
            tuple(sorted(self.operations)),
            _joined(self.numbers),
            _joined(self.weights),
        )


def _facts(artifact: Artifact, version: Version) -> Mapping[str, _Facts]:
    """Return what is known of layers, by their keys."""
    gathered = {layer.index: _Gathered() for layer in version.layers}
    report = artifact.report
    constants = {
        place: _constants(step)
        for place, step in enumerate(artifact.steps)
        if isinstance(step, NpuStep)
    }
    for operation in cost_report(artifact).operations:
        origin = operation.origin
        index = operation.index
        if report is not None:
            index = -1 if origin is None or origin.operator is None else origin.operator
        layer = gathered.get(index, _Gathered())
        layer.shapes.append(operation.shape)
        command = None if origin is None else origin.command
        of_step = constants.get(operation.step, {})
        layer.add(operation.name, NOTHING if command is None else of_step.get(4 * command, NOTHING))
    for index, contents in _on_cpu(artifact).items():
        gathered.get(index, _Gathered()).weights.append(contents)
    known = {} if report is None else {each.index: each.shape for each in report.placements}
    return {
        layer_key(layer): gathered[layer.index].facts(known.get(layer.index, ""))
        for layer in version.layers
    }


def _constants(step: NpuStep) -> Mapping[int, Mapping[str, Array]]:
    try:
        return step.family.constants(step.simulator)
    except MizzenError:
        return {}  # what cannot be simulated is told by those who run it


def _on_cpu(artifact: Artifact) -> Mapping[int, bytes]:
    try:
        return loads_of(artifact).constants_of
    except MizzenError:
        return {}


def _joined(parts: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest() if parts else ""
