"""The size of an arena for TensorFlow Lite Micro, as its interpreter allocates from it.

An interpreter allocates from both ends. From the start: a plan of tensors and of what kernels need
while they run. From the end, and for good: its own structures and what kernels keep. What it needs
while it prepares lies where the plan does, before that is there; in small networks that is more.

Ref: tflite-micro 90b983c, micro_allocator.cc, micro_interpreter.cc,
single_arena_buffer_allocator.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mizzen.artifact.ethos_u import ETHOS_U
from mizzen.artifact.steps import is_npu
from mizzen.export.tflm.arena import structures as size
from mizzen.export.tflm.arena.kernels import Requests, bytes_on_device, requests_of
from mizzen.export.tflm.arena.lifetimes import Key, Lifetimes
from mizzen.export.tflm.arena.measured import measured
from mizzen.export.tflm.arena.planning import Buffer, end_of, plan
from mizzen.export.tflm.arena.structures import ALIGNMENT_BYTES, Block
from mizzen.frontends.tflite import Model, Operator, Subgraph, Tensor
from mizzen.frontends.tflite.subgraphs import reached_from, seen_from
from mizzen.frontends.tflite.variables import handles


@dataclass(frozen=True, slots=True)
class Planned:
    """A tensor in the arena's plan, or memory of a kernel.

    tensor    subgraph and tensor; None of what a kernel needs while it runs
    operator  subgraph and operator of such a kernel; None of a tensor
    """

    name: str
    tensor: Key | None
    operator: Key | None
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes at the arena's end.

    state   where a network's variable is in them
    tensor  subgraph and tensor of such a variable, if it is one
    """

    name: str
    size_bytes: int
    state: bool = False
    tensor: Key | None = None


@dataclass(frozen=True, slots=True)
class TflmArena:
    """An arena.

    planned      what lies at its start
    kept         what lies at its end, alignment included
    plan_bytes   of its start
    used_bytes   what the interpreter says that it uses once it is prepared (arena_used_bytes)
    least_bytes  the smallest arena in which the network can be prepared, a multiple of 16
    exact        whether all of it is known; else the sizes are bounds
    """

    planned: tuple[Planned, ...]
    kept: tuple[Kept, ...]
    plan_bytes: int
    used_bytes: int
    least_bytes: int
    exact: bool


def arena_of(model: Model) -> TflmArena:
    """Return the arena that a network needs. E701 to E707 where kernels do not take an operator."""
    return _Interpreter(model).prepared()


@dataclass(slots=True)
class _Ends:
    """How far both ends have grown; `least` is the most that they ever took together."""

    head: int = 0
    tail: int = 0
    least: int = 0
    kept: list[Kept] = field(default_factory=list[Kept])

    def keep(
        self, name: str, block: Block, *, state: bool = False, tensor: Key | None = None
    ) -> None:
        """Take a block from the end, for good."""
        before, self.tail = self.tail, _up(self.tail + block.size_bytes, block.alignment)
        self.kept.append(Kept(name, self.tail - before, state, tensor))
        self.need(self.head)

    def need(self, head: int) -> None:
        """Note that the start must reach so far now."""
        self.least = max(self.least, head + self.tail)


class _Interpreter:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._ends = _Ends()
        self._offsets = dict(_offsets(model))
        self._assigned: set[tuple[str, str]] = set()
        self._exact = True
        self._requests = {
            (subgraph.index, operator.index): self._asked(subgraph, operator)
            for subgraph in model.subgraphs
            for operator in subgraph.operators
        }

    def _asked(self, subgraph: Subgraph, operator: Operator) -> Requests:
        requests = requests_of(self._model, subgraph, operator)
        if requests is None:
            self._exact = False
            requests = measured(self._model, subgraph, operator)
        return requests

    def prepared(self) -> TflmArena:
        ends = self._ends
        self._structures()
        counted = self._kernels()
        buffers, keys = self._planning(counted)
        offsets = plan(buffers)
        ends.head = _up(end_of(buffers, offsets))
        ends.need(ends.head)
        self._shown()
        return TflmArena(
            planned=tuple(self._named(buffers, keys, offsets)),
            kept=tuple(ends.kept),
            plan_bytes=ends.head,
            used_bytes=ends.head + ends.tail,
            least_bytes=_up(ends.least),
            exact=self._exact,
        )

    def _structures(self) -> None:
        model, keep = self._model, self._ends.keep
        for block in (size.SINGLE_ARENA_BUFFER_ALLOCATOR, size.GREEDY_MEMORY_PLANNER,
                      size.MICRO_ALLOCATOR):  # fmt: skip
            keep("interpreter", block)
        if count := variables_of(model):
            keep("interpreter", size.RESOURCE_VARIABLES)
            resource = Block(size.RESOURCE_VARIABLE_BYTES * count, ALIGNMENT_BYTES)
            keep("interpreter", resource)
        keep("interpreter", size.BUILTIN_DATA_ALLOCATOR)
        self._reserve(0)
        keep("interpreter", Block(size.SUBGRAPH_BYTES * len(model.subgraphs)))
        for subgraph in model.subgraphs:
            keep("tensors", Block(size.EVAL_TENSOR_BYTES * len(subgraph.tensors)))
        for subgraph in model.subgraphs:
            keep("operators", Block(size.NODE_BYTES * len(subgraph.operators)))

    def _reserve(self, requests: int) -> None:
        """Make room for requests at the start: those there are, and those of one more kernel."""
        self._ends.head = size.REQUEST_BYTES * (requests + size.REQUESTS_PER_OPERATOR)
        self._ends.need(self._ends.head)

    def _operators(self) -> Iterator[tuple[Key, Subgraph, Operator]]:
        for subgraph in self._model.subgraphs:
            for operator in subgraph.operators:
                yield (subgraph.index, operator.index), subgraph, operator

    def _kernels(self) -> int:
        """Let kernels be made and prepare; return how many blocks they need while they run."""
        ends, count = self._ends, 0
        for key, _, operator in self._operators():
            if (options := self._requests[key].options) is not None:
                ends.keep(operator.kind, options)
        for key, _, operator in self._operators():
            for asked in self._requests[key].kept:
                ends.keep(operator.kind, Block(asked, ALIGNMENT_BYTES))
        for key, subgraph, operator in self._operators():
            requests = self._requests[key]
            touched = subgraph.present((*operator.inputs, *operator.outputs))
            ends.need(ends.head + requests.looks * sum(map(_described, touched)))
            state = operator.kind == "ASSIGN_VARIABLE"
            name = self._variable(subgraph, operator)[1] if state else operator.kind
            for asked in self._prepared(subgraph, operator, requests):
                ends.keep(name, Block(asked, ALIGNMENT_BYTES), state=state)
            count += len(requests.running)
            self._reserve(count)
        if count:
            ends.keep("operators", Block(size.HANDLE_BYTES * count))
        return count

    def _prepared(
        self, subgraph: Subgraph, operator: Operator, requests: Requests
    ) -> Sequence[int]:
        """Return the sizes that a kernel keeps when prepared; the first makes a variable."""
        if operator.kind != "ASSIGN_VARIABLE":
            return requests.prepared
        name = self._variable(subgraph, operator)
        if name in self._assigned:
            return ()
        self._assigned.add(name)
        return requests.prepared

    def _variable(self, subgraph: Subgraph, operator: Operator) -> tuple[str, str]:
        """Return the variable that an operator assigns: its container and name."""
        unknown = str(subgraph.index), f"variable of operator {operator.index}"
        return dict(handles(subgraph)).get(operator.inputs[0], unknown)

    def _planning(self, count: int) -> tuple[list[Buffer], list[tuple[Key | None, Key | None]]]:
        """Return the buffers of the plan and what they are, with room for making the plan."""
        model, ends = self._model, self._ends
        tensors = sum(len(each.tensors) for each in model.subgraphs)
        start = ends.head + size.POINTER_BYTES * len(model.subgraphs)
        start += size.ALLOCATION_INFO_BYTES * (tensors + count)
        ends.need(start)
        for subgraph in model.subgraphs:
            for tensor in subgraph.tensors:
                key = subgraph.index, tensor.index
                if tensor.variable and key not in self._offsets:
                    block = Block(bytes_on_device(tensor), ALIGNMENT_BYTES)
                    name = tensor.name or f"tensor {tensor.index}"
                    ends.keep(name, block, state=True, tensor=key)
        buffers, keys = self._buffers()
        aligned = _up(start) + size.PLANNED_BYTES * len(buffers)
        ends.least = max(ends.least, aligned + _up(ends.tail))
        return buffers, keys

    def _buffers(self) -> tuple[list[Buffer], list[tuple[Key | None, Key | None]]]:
        lives = Lifetimes(self._model)
        buffers: list[Buffer] = []
        keys: list[tuple[Key | None, Key | None]] = []
        for subgraph in self._model.subgraphs:
            for tensor in subgraph.tensors:
                key = subgraph.index, tensor.index
                offset = self._offsets.get(key)
                if _is_planned(tensor, offset) and bytes_on_device(tensor):
                    buffers.append(
                        Buffer(_up(bytes_on_device(tensor)), *lives.of_tensor(key), offset)
                    )
                    keys.append((key, None))
        for key, requests in self._requests.items():
            span = lives.operators.get(key, (-1, -1))
            for asked in requests.running:
                buffers.append(Buffer(_up(asked), *span))
                keys.append((None, key))
        return buffers, keys

    def _shown(self) -> None:
        """Make the network's inputs and outputs, which have structures of their own."""
        main, keep = self._model.main, self._ends.keep
        for indices in (main.inputs, main.outputs):
            keep("inputs and outputs", Block(size.POINTER_BYTES * len(indices), ALIGNMENT_BYTES))
            for tensor in main.present(indices):
                keep("inputs and outputs", size.TENSOR)
                if channels := _channels(tensor):
                    keep("inputs and outputs", size.QUANTISATION)
                    keep("inputs and outputs", Block(_zero_points(channels)))

    def _named(
        self,
        buffers: Sequence[Buffer],
        keys: Sequence[tuple[Key | None, Key | None]],
        offsets: Sequence[int],
    ) -> Iterator[Planned]:
        for buffer, (tensor, operator), offset in zip(buffers, keys, offsets, strict=True):
            if tensor is not None:
                of_model = self._model.subgraphs[tensor[0]].tensors[tensor[1]]
                name = of_model.name or f"tensor {of_model.index}"
                yield Planned(name, tensor, None, offset, bytes_on_device(of_model))
            elif operator is not None:
                kind = self._model.subgraphs[operator[0]].operators[operator[1]].kind
                yield Planned(kind, None, operator, offset, buffer.size_bytes)


def variables_of(model: Model) -> int:
    """Return how many resource variables a network has."""
    return len({name for subgraph in model.subgraphs for _, name in handles(subgraph)})


def _offsets(model: Model) -> Iterator[tuple[Key, int]]:
    """Return where the compiler has put tensors."""
    for subgraph in model.subgraphs:
        if any(map(is_npu, subgraph.operators)):
            seen = seen_from(model, reached_from(model, subgraph.index))
            offsets: Mapping[int, int] = ETHOS_U.arena_offsets(seen)
            yield from (((subgraph.index, index), at) for index, at in offsets.items())


def _is_planned(tensor: Tensor, offset: int | None) -> bool:
    return tensor.data is None and (not tensor.variable or offset is not None)


def _channels(tensor: Tensor) -> int:
    return 0 if tensor.quantization is None else len(tensor.quantization.scale)


def _zero_points(channels: int) -> int:
    return size.COUNT_BYTES + size.CHANNEL_BYTES * channels


def _described(tensor: Tensor) -> int:
    """Return the bytes that a tensor takes while a kernel looks at it."""
    total = size.TENSOR.size_bytes
    if channels := _channels(tensor):
        total += size.QUANTISATION.size_bytes + _zero_points(channels)
    return total


def _up(size_bytes: int, alignment: int = ALIGNMENT_BYTES) -> int:
    return -(-size_bytes // alignment) * alignment
