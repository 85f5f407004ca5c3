"""Execute a program on images, whichever engine does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array
from mizzen.mesh.execution.dividing import divide
from mizzen.mesh.execution.engines import Crew, Engine, InProcess, Job, Lost
from mizzen.mesh.execution.part import Answer, Arrival, Batch, Gift, Loss, Orders
from mizzen.mesh.execution.tiles import Dtypes, dtypes_of
from mizzen.mesh.machine import Machine, without_chip
from mizzen.mesh.network.boxes import slices
from mizzen.mesh.network.network import Network
from mizzen.mesh.program import MeshProgram

IMAGES_AT_ONCE = 8
"""Of a replica, in one batch: enough for matrix products to be fast, little enough for memory."""

MOST_RESTARTS = 5
"""Of one part in one execution; a part that ends its worker again and again will do so again."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of an execution.

    outputs   of the network, in its order, `[images, *shape]` each
    tensors   by index, inputs too, where all were asked for
    restarts  workers that were lost and replaced
    moved_messages, moved_bytes  that went between workers
    repeated  images that were executed again, by another program, since a chip was lost
    """

    outputs: tuple[Array, ...]
    tensors: dict[int, Array]
    restarts: int
    moved_messages: int
    moved_bytes: int
    repeated: tuple[int, ...] = ()


def execute(
    program: MeshProgram,
    inputs: Sequence[Array],
    engine: Engine | None = None,
    *,
    all_tensors: bool = False,
    images_at_once: int = IMAGES_AT_ONCE,
) -> Executed:
    """Execute a program, in this process unless an engine is given.

    inputs  `[images, *shape]` for each of the network's inputs

    Raises E534 for a network of shapes only and for other inputs than the network has, E532 and
    E535 for programs that want what does not come, E536 for workers that are lost again and again,
    and what the operations raise.
    """
    chosen = engine or InProcess()
    check_inputs(program.network, inputs)
    job = Job(program, divide(program, chosen.workers), all_tensors)
    crew = chosen.start(job)
    try:
        return Run(job, crew, inputs, images_at_once, 2 * chosen.workers).run()
    finally:
        crew.close()


def execute_through(
    loss: Loss,
    program: MeshProgram,
    inputs: Sequence[Array],
    remap: Callable[[Machine], MeshProgram],
    engine: Engine | None = None,
    *,
    images_at_once: int = IMAGES_AT_ONCE,
) -> Executed:
    """Execute a program on a machine that loses a chip on the way, and go on without the chip.

    remap  returns the program of the same network on the machine as it is then

    What was finished stays; the images that were under way, and all later ones, are executed by the
    new program. Raises what `execute` and `remap` raise.
    """
    chosen = engine or InProcess()
    check_inputs(program.network, inputs)
    crew = chosen.start(job := Job(program, divide(program, chosen.workers), False, loss))
    try:
        before = Run(job, crew, inputs, images_at_once, 2 * chosen.workers).run()
    finally:
        crew.close()
    if not before.repeated:
        return before
    rest = list(before.repeated)
    left = remap(without_chip(program.machine, loss.chip))
    given = [array[rest] for array in inputs]
    after = execute(left, given, engine, images_at_once=images_at_once)
    for one, other in zip(before.outputs, after.outputs, strict=True):
        one[rest] = other
    return Executed(
        before.outputs,
        {},
        before.restarts + after.restarts,
        before.moved_messages + after.moved_messages,
        before.moved_bytes + after.moved_bytes,
        before.repeated,
    )


def check_inputs(network: Network, inputs: Sequence[Array]) -> None:
    """Refuse a network that cannot be executed, and what are not its inputs."""
    if not network.is_executable:
        raise fail(
            "E534",
            f"{network.name} must have weights to be executed, and has shapes only",
            help="map a .tflite file or a quantised PyTorch program instead",
        )
    if len(inputs) != len(network.inputs):
        raise fail(
            "E534",
            f"{len(network.inputs)} inputs must be given for {network.name}, not {len(inputs)}",
        )
    if not all(map(len, inputs)):
        raise fail("E534", "at least one image must be given, not none")
    dtypes = dtypes_of(network)
    for index, array in zip(network.inputs, inputs, strict=True):
        tensor = network.tensors[index]
        dtype = dtypes.get(index, array.dtype)
        if array.shape[1:] != tensor.shape or array.dtype != dtype or len(array) != len(inputs[0]):
            raise fail(
                "E534",
                f"input {tensor.name} must be {dtype} {['images', *tensor.shape]}, and is "
                f"{array.dtype} {list(array.shape)}".replace("'", ""),
            )


@dataclass(eq=False, slots=True)
class _Progress:
    """A batch under way: its images' indices, what each part was told, who has finished it."""

    batch: Batch
    images: Array
    told: dict[int, Orders] = field(default_factory=dict[int, Orders])
    sent: set[int] = field(default_factory=set[int])
    finished: set[int] = field(default_factory=set[int])


class Run:
    """One execution: gives out batches and messages, and collects what comes back."""

    def __init__(
        self, job: Job, crew: Crew, inputs: Sequence[Array], images_at_once: int, most: int
    ) -> None:
        self.job = job
        self.crew = crew
        self.inputs = dict(zip(job.program.network.inputs, inputs, strict=True))
        self.count = len(inputs[0]) if inputs else 0
        self.most = most
        self.part_of = {
            element: part for part, elements in enumerate(job.parts) for element in elements
        }
        self.waiting = self._batches(images_at_once)
        self.under_way: dict[int, _Progress] = {}
        self.pending: dict[int, Orders] = {part: Orders() for part in range(len(job.parts))}
        self.busy: set[int] = set()
        self.stuck: dict[int, Answer] = {}
        self.restarts: dict[int, int] = {}
        self.moved_messages = 0
        self.moved_bytes = 0
        self.dtypes: Dtypes = dtypes_of(job.program.network)
        self.tensors: dict[int, Array] = {}

    def run(self) -> Executed:
        """Execute everything."""
        self._begin()
        while self.under_way:
            self._submit()
            if not self.busy:
                if self.job.loss is not None:
                    break
                raise self._blocked()
            part, answer = self.crew.wait()
            self.busy.discard(part)
            if isinstance(answer, Lost):
                self._restart(part, answer)
            else:
                self._take(part, answer)
                self._begin()
        network = self.job.program.network
        outputs = tuple(self._tensor(index) for index in network.outputs)
        tensors = {**self.inputs, **self.tensors} if self.job.all_tensors else {}
        return Executed(
            outputs,
            tensors,
            sum(self.restarts.values()),
            self.moved_messages,
            self.moved_bytes,
            self._unfinished(),
        )

    def _unfinished(self) -> tuple[int, ...]:
        """Return the images that a lost chip left, those that were not begun too."""
        left = [*self.under_way.values(), *self.waiting]
        return tuple(sorted(int(image) for each in left for image in each.images))

    def _batches(self, images_at_once: int) -> Iterator[_Progress]:
        """Make batches of images of one replica, in the order of their first images."""
        replicas = self.job.program.replicas
        index = 0
        for first in range(0, self.count, replicas * images_at_once):
            for replica in self._replicas_in_turn():
                behind = min(self.count, first + replicas * images_at_once)
                images = np.arange(first + replica, behind, replicas)
                if len(images):
                    given = {tensor: array[images] for tensor, array in self.inputs.items()}
                    yield _Progress(
                        Batch(index, replica, len(images), int(images[-1]), given), images
                    )
                    index += 1

    def _replicas_in_turn(self) -> list[int]:
        """Return the replicas so that those of different parts follow each other."""
        part_of: dict[int, int] = {}
        for element in self.job.program.elements:
            part_of.setdefault(element.replica, self.part_of.get(element.element, 0))
        seen: Counter[int] = Counter()
        turn: dict[int, tuple[int, int]] = {}
        for replica in range(self.job.program.replicas):
            part = part_of.get(replica, 0)
            turn[replica] = seen[part], replica
            seen[part] += 1
        return sorted(turn, key=turn.__getitem__)

    def _begin(self) -> None:
        """Begin batches until as many are under way as may be."""
        while len(self.under_way) < self.most:
            progress = next(self.waiting, None)
            if progress is None:
                return
            self.under_way[progress.batch.index] = progress
            for part in self.pending:
                self._tell(part, progress, begin=progress.batch)

    def _tell(
        self,
        part: int,
        progress: _Progress,
        begin: Batch | None = None,
        arrival: Arrival | None = None,
    ) -> None:
        told = progress.told.setdefault(part, Orders())
        for orders in (told, self.pending[part]):
            if begin is not None:
                orders.begin.append(begin)
            if arrival is not None:
                orders.arrivals.append(arrival)

    def _submit(self) -> None:
        """Give each part that has nothing to do what there is of its oldest batch.

        One batch at a time: what a part has to send of it is another's work while it does the next.
        """
        for part, orders in self.pending.items():
            if part not in self.busy and (orders.begin or orders.arrivals):
                self.busy.add(part)
                now, self.pending[part] = orders.parted()
                self.crew.submit(part, now)

    def _take(self, part: int, answer: Answer) -> None:
        self.stuck[part] = answer
        for arrival in answer.sent:
            progress = self.under_way.get(arrival.batch)
            if progress is not None and arrival.message not in progress.sent:
                progress.sent.add(arrival.message)
                self._forward(part, progress, arrival)
        for gift in answer.given:
            self._keep(gift)
        for batch in answer.finished:
            progress = self.under_way.get(batch)
            if progress is not None:
                progress.finished.add(part)
                if len(progress.finished) == len(self.job.parts):
                    del self.under_way[batch]

    def _forward(self, part: int, progress: _Progress, arrival: Arrival) -> None:
        targets = self.job.program.routes[arrival.message].targets
        for other in sorted({self.part_of[target] for target in targets} - {part}):
            self.moved_messages += 1
            self.moved_bytes += arrival.values.nbytes
            self._tell(other, progress, arrival=arrival)

    def _keep(self, gift: Gift) -> None:
        progress = self.under_way.get(gift.batch)
        if progress is not None:
            tensor = self._tensor(gift.tensor)
            tensor[(progress.images, *slices(gift.box))] = gift.values

    def _tensor(self, index: int) -> Array:
        if index not in self.tensors:
            shape = self.job.program.network.tensors[index].shape
            self.tensors[index] = np.zeros((self.count, *shape), self.dtypes[index])
        return self.tensors[index]

    def _restart(self, part: int, lost: Lost) -> None:
        """Replace a worker, and tell the new one all that its part was told."""
        self.restarts[part] = self.restarts.get(part, 0) + 1
        if self.restarts[part] > MOST_RESTARTS:
            raise fail(
                "E536",
                f"the worker of part {part} must not end, and ended {self.restarts[part]} times: "
                f"{lost.reason}",
            )
        self.crew.replace(part)
        self.pending[part] = Orders()
        for progress in self.under_way.values():
            told = progress.told.get(part, Orders())
            self.pending[part].begin.extend(told.begin)
            self.pending[part].arrivals.extend(told.arrivals)

    def _blocked(self) -> MizzenError:
        waiting = [entry for answer in self.stuck.values() for entry in answer.waiting]
        machine = self.job.program.machine
        if not waiting:
            return fail("E535", "every element must finish its program, and none can go on")
        batch, message, element = min(waiting)
        images = self.under_way[batch].images if batch in self.under_way else [0]
        more = f"; {len(waiting) - 1} more wait" if len(waiting) > 1 else ""
        return fail(
            "E535",
            f"message {message} must come to {machine.element_name(element)} for image "
            f"{int(images[0])}, and nothing can go on that would send it{more}",
            help="the checker of programs says which elements wait for each other",
        )
