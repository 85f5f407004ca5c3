"""Some elements of a machine, executing their programs on several images at once.

An element does what its program says and knows nothing else: it takes messages, fills regions,
computes on what is in them, and sends. Images are independent, so those of a batch are one more
dimension of everything. What the program does not say is not there: a box that nothing wrote is an
error, as is one that another region's bytes have overwritten.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array
from mizzen.mesh.execution.custom import custom_kernel
from mizzen.mesh.execution.memory import Memory
from mizzen.mesh.execution.tiles import Tiles
from mizzen.mesh.network.boxes import Box
from mizzen.mesh.program import (
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    Instruction,
    MeshProgram,
    Receive,
    Send,
)


@dataclass(frozen=True, slots=True)
class Batch:
    """Images of one replica: `inputs` has `[count, *shape]` of each tensor from outside.

    `last` is the index of the last image among all that are executed.
    """

    index: int
    replica: int
    count: int
    last: int
    inputs: dict[int, Array]


@dataclass(frozen=True, slots=True)
class Loss:
    """A chip that is lost while images are under way: its elements do nothing from `image` on."""

    chip: int
    image: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message of the images of a batch, `[count, *box]`."""

    batch: int
    message: int
    values: Array


@dataclass(frozen=True, slots=True)
class Gift:
    """A box of a tensor of the images of a batch, for the outside."""

    batch: int
    tensor: int
    box: Box
    values: Array


@dataclass(frozen=True, slots=True)
class Orders:
    """What a part is told: batches to begin, messages from other parts, batches to give up."""

    begin: list[Batch] = field(default_factory=list[Batch])
    arrivals: list[Arrival] = field(default_factory=list[Arrival])

    def parted(self) -> tuple[Orders, Orders]:
        """Return the orders about the oldest batch, and the rest."""
        begun = (batch.index for batch in self.begin)
        oldest = min((*begun, *(each.batch for each in self.arrivals)), default=0)
        now, later = Orders(), Orders()
        for batch in self.begin:
            (now if batch.index == oldest else later).begin.append(batch)
        for arrival in self.arrivals:
            (now if arrival.batch == oldest else later).arrivals.append(arrival)
        return now, later


@dataclass(frozen=True, slots=True)
class Answer:
    """What a part has to say once nothing in it can go on.

    sent      messages that have targets elsewhere
    given     boxes of outputs, and of every tensor where that was asked for
    finished  batches of which every element has done everything
    waiting   messages that are waited for: of a batch, by an element
    """

    sent: list[Arrival] = field(default_factory=list[Arrival])
    given: list[Gift] = field(default_factory=list[Gift])
    finished: list[int] = field(default_factory=list[int])
    waiting: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])


@dataclass(eq=False, slots=True)
class _Element:
    """An element at work on a batch."""

    program: ElementProgram
    batch: Batch
    memory: Memory
    next: int = 0


class Part:
    """A set of elements. `all_tensors` says that every tensor is given, not outputs alone."""

    def __init__(
        self,
        program: MeshProgram,
        elements: Sequence[int],
        all_tensors: bool,
        loss: Loss | None = None,
    ) -> None:
        here = set(elements)
        self.program = program
        self.loss = loss
        self.all_tensors = all_tensors
        self.elements = [element for element in program.elements if element.element in here]
        self.tiles = Tiles(program, custom_kernel())
        self.taken = Counter(
            instruction.message
            for element in self.elements
            for instruction in element.instructions
            if isinstance(instruction, Receive)
        )
        routes = enumerate(program.routes)
        self.leaving = {index for index, route in routes if not here.issuperset(route.targets)}
        self.inbox: dict[tuple[int, int], tuple[Array, int]] = {}
        self.waiting: dict[tuple[int, int], list[_Element]] = {}
        self.busy: Counter[int] = Counter()
        self.ready: deque[_Element] = deque()
        self.answer = Answer()

    def work(self, orders: Orders) -> Answer:
        """Do all that can be done now. E532 to E534 for what a program wants and cannot have."""
        self.answer = Answer()
        for batch in orders.begin:
            self._begin(batch)
        for arrival in orders.arrivals:
            self._arrive(arrival)
        while self.ready:
            self._advance(self.ready.popleft())
        self.answer.waiting.extend(
            (batch, message, element.program.element)
            for (batch, message), elements in self.waiting.items()
            for element in elements
        )
        return self.answer

    def _begin(self, batch: Batch) -> None:
        for element in self.elements:
            if element.replica == batch.replica:
                memory = Memory(self.program, element, self.tiles.dtypes, batch.count)
                self.busy[batch.index] += 1
                self.ready.append(_Element(element, batch, memory))
        if not self.busy[batch.index]:
            self.answer.finished.append(batch.index)

    def _arrive(self, arrival: Arrival) -> None:
        key = arrival.batch, arrival.message
        takers = self.taken[arrival.message]
        if takers:
            self.inbox[key] = arrival.values, takers
        self.ready.extend(self.waiting.pop(key, ()))

    def _advance(self, element: _Element) -> None:
        """Execute instructions until a message has to be waited for."""
        if self._is_lost(element):
            return
        instructions = element.program.instructions
        while element.next < len(instructions):
            instruction = instructions[element.next]
            if isinstance(instruction, Receive):
                key = element.batch.index, instruction.message
                if key not in self.inbox:
                    self.waiting.setdefault(key, []).append(element)
                    return
            try:
                self._execute(element, instruction)
            except MizzenError as error:
                raise self._placed(element, error) from error
            element.next += 1
        self.busy[element.batch.index] -= 1
        if not self.busy[element.batch.index]:
            self.answer.finished.append(element.batch.index)

    def _is_lost(self, element: _Element) -> bool:
        if self.loss is None or element.batch.last < self.loss.image:
            return False
        chips = self.program.machine.element_chip
        return int(chips[element.program.element]) == self.loss.chip

    def _placed(self, element: _Element, error: MizzenError) -> MizzenError:
        name = self.program.machine.element_name(element.program.element)
        diagnostic = error.diagnostic
        message = f"{name}, instruction {element.next}: {diagnostic.message}"
        return fail(
            diagnostic.code,
            message,
            origin=diagnostic.origin,
            rule=diagnostic.rule,
            help=diagnostic.help,
        )

    def _execute(self, element: _Element, instruction: Instruction) -> None:
        memory, batch = element.memory, element.batch
        match instruction:
            case Fetch():
                memory.fetch(instruction.region, batch.inputs[instruction.tensor])
            case Receive():
                self._receive(memory, batch, instruction)
            case Copy():
                values = memory.read(instruction.source, instruction.box)
                memory.write(instruction.target, instruction.box, values)
            case Compute():
                self._compute(element, instruction)
            case Send():
                values = memory.read(instruction.region, instruction.box)
                self._send(batch, instruction.message, values)
            case Give():
                values = memory.read(instruction.region, instruction.box)
                self._give(batch, instruction.tensor, instruction.box, values)

    def _receive(self, memory: Memory, batch: Batch, instruction: Receive) -> None:
        key = batch.index, instruction.message
        values, takers = self.inbox.pop(key)
        if takers > 1:
            self.inbox[key] = values, takers - 1
        memory.write(instruction.region, instruction.box, values)

    def _send(self, batch: Batch, message: int, values: Array) -> None:
        arrival = Arrival(batch.index, message, values)
        self._arrive(arrival)
        if message in self.leaving:
            self.answer.sent.append(arrival)

    def _give(self, batch: Batch, tensor: int, box: Box, values: Array) -> None:
        self.answer.given.append(Gift(batch.index, tensor, box, values))

    def _compute(self, element: _Element, instruction: Compute) -> None:
        kernel, memory, batch = instruction.kernel, element.memory, element.batch
        kind = self.program.machine.kind_of(element.program.element)
        values = self.tiles.compute(instruction, kind, memory, batch.count)
        memory.write(instruction.output, kernel.box, values)
        if self.all_tensors and not kernel.gives_sums:
            tensor = self.program.network.layers[kernel.layer].output
            self._give(batch, tensor, kernel.box, values)
