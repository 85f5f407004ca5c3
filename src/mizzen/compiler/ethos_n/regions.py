"""Regions of a tensor graph through the compiler for Ethos-N78."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mizzen.artifact.interface import Array
from mizzen.artifact.program import RunOutcome
from mizzen.artifact.region_step import Edge, EdgeMove
from mizzen.artifact.steps import read_network
from mizzen.compiler.codegen import Costs, OperatorCode, RegionRefusal, Way
from mizzen.compiler.ethos_n.edge_layout import EdgeTransposes, images_last, take_out_views
from mizzen.compiler.refusals import RefusalSearch
from mizzen.diagnostics import MizzenError, Origin, ProgressCallback, Reason
from mizzen.graph import Graph, Value
from mizzen.ops.limits import WindowLimits
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.partition import Extracted, Partition, extract
from mizzen.partition.placement import Legal
from mizzen.passes.layout import Movement
from mizzen.report import Area
from mizzen.targets.ethos_n.commands import offsets
from mizzen.targets.ethos_n.compile import CompiledNetwork, compile_network
from mizzen.targets.ethos_n.config import VariantConfiguration, encode_capabilities
from mizzen.targets.ethos_n.network import OFFSET, Network, as_unsigned
from mizzen.targets.ethos_n.patterns import (
    Covering,
    Generated,
    RegionRefusedError,
    generate,
    generate_part,
    legality,
    prepare,
    unprofitable,
)
from mizzen.targets.ethos_n.program import program_with
from mizzen.targets.ethos_n.timing import Estimated, as_data, estimate
from mizzen.targets.families import ETHOS_N

NPU_SUFFIX = "_npu"
"""Ends the names of tensors in the NPU's order of axes."""
SHAPED_SUFFIX = "_shaped"
"""Ends the names of tensors between a RESHAPE and a TRANSPOSE."""
Shape = tuple[int, ...]
IsUnsigned = Callable[[Value], bool]
"""Whether a value is one of unsigned bytes, whose integers are less by 128 in the graph."""

COMPILER = "Mizzen for Ethos-N78, command stream 3.1"


MIXED = Reason(
    "one-sign",
    "its region would have both signed and unsigned numbers at its edges",
    help="quantise the network to int8 throughout",
    source=COMPILER,
)


def _never(value: Value) -> bool:
    """Say that a value is signed, as all are of a graph that does not come from TFLite."""
    return False


WINDOW_LIMITS = WindowLimits(longest_stride=3, largest_kernel=64)
"""Windows whose means come as convolutions with ones: the patterns of pools know those."""


AGAINST = "the network's integers with the NPU's own roundings (not TensorFlow Lite's)"
"""What code for the NPU is proved to give."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkReference:
    """What a program must compute, by the integer meaning of the network that it is made of.

    order  for each output of the program, which one of the network it is
    """

    network: Network
    order: Sequence[int]

    def run(self, arrays: Sequence[Array], batch: int) -> RunOutcome:
        """Infer a batch of the program's inputs, `[batch, *shape]`."""
        from mizzen.targets.ethos_n.reference import evaluate

        given = [
            array.reshape(batch, *operand.info.shape[1:])
            for array, operand in zip(arrays, self.network.inputs, strict=True)
        ]
        results = evaluate(self.network, given)
        dtypes = [operand.info.data_type.dtype for operand in self.network.outputs]
        return RunOutcome(tuple(results[index].astype(dtypes[index]) for index in self.order))


class EthosNRegions:
    """Compiles regions of graphs that have channels last, as TFLite's networks do.

    The whole graph is covered once, when it is judged: its regions are made of the same composites.
    """

    window_limits = WINDOW_LIMITS

    def __init__(
        self, configuration: VariantConfiguration, inline: bool, is_unsigned: IsUnsigned = _never
    ) -> None:
        self._configuration = configuration
        self._inline = inline
        self._is_unsigned = is_unsigned
        self._covering: Covering | None = None

    def legality(self, graph: Graph) -> Legal:
        """Return a function that tells why a group of a graph's operations is not on the NPU."""
        self._covering = Covering(graph, self._configuration)
        return legality(self._covering)

    def unprofitable(self, partition: Partition) -> Mapping[int, Reason]:
        """Return groups of regions in which nothing computes much, if they are to be inlined."""
        if self._covering is None or not self._inline:
            return {}
        return unprofitable(partition, self._covering)

    @property
    def ways(self) -> tuple[Way, ...]:
        """The one way there is."""
        return (Way("compiled", "there is one way", self.compile),)

    def compile(
        self, part: Extracted, on_progress: ProgressCallback | None
    ) -> OperatorCode | RegionRefusal:
        """Compile a region, whose graph is changed to the form that the NPU has."""
        groups = _groups(part)
        apart, moves = self._prepared(part)
        signs = {self._is_unsigned(value) for value in (*part.inputs, *part.outputs)}
        if len(signs) > 1:
            return RegionRefusal(dict.fromkeys(groups, MIXED), MIXED)
        unsigned = True in signs
        try:
            generated = self._generated(part)
            network = generated.network
            if unsigned:
                network = as_unsigned(network)
            compiled = compile_network(network, self._configuration)
        except RegionRefusedError as error:
            reason = _reason(error)
            refused = {apart.get(group, group): why for group, why in error.groups.items()}
            return RegionRefusal(refused or dict.fromkeys(groups, reason), reason)
        except MizzenError as error:
            reason = _reason(error)
            blamed = _at(part, error.diagnostic.origin) or self._refused_alone(part.graph)
            return RegionRefusal(dict.fromkeys(blamed or groups, reason), reason)
        code = self._code(part, moves, generated, compiled, unsigned)
        order = [generated.output_order[index] for index in code.computed]
        reference = NetworkReference(network, order)
        return replace(code, reference=reference, against=AGAINST)

    def _prepared(self, part: Extracted) -> tuple[Mapping[int, int], EdgeTransposes]:
        """Bring a region's graph into the form that the NPU has; here it is in it already.

        Returns new groups with those that they come from, and what the CPU does at the edges.
        """
        return {}, EdgeTransposes((None,) * len(part.inputs), (None,) * len(part.outputs))

    def _generated(self, part: Extracted) -> Generated:
        covering = self._covering
        made = None if covering is None else generate_part(covering, part)
        return made or generate(part.graph, self._configuration)

    def _refused_alone(self, graph: Graph) -> set[int]:
        """Return the groups that cannot be compiled even without the others of their region."""

        def compile(groups: Sequence[int]) -> MizzenError | None:
            try:
                alone = generate(extract(graph, groups).graph, self._configuration)
                compile_network(alone.network, self._configuration)
            except RegionRefusedError:
                return None  # it is only complete with its neighbours
            except MizzenError as error:
                return error
            return None

        groups = sorted({operation.group for operation in graph if operation.group is not None})
        return set(RefusalSearch(groups, compile).alone(groups))

    def _code(
        self,
        part: Extracted,
        moves: EdgeTransposes,
        generated: Generated,
        compiled: CompiledNetwork,
        unsigned: bool,
    ) -> OperatorCode:
        capabilities = self._configuration.capabilities
        constants = compiled.serialize(), encode_capabilities(capabilities)
        given, computed = generated.input_order, _computed(generated, compiled)
        estimated = estimate(compiled.passes, capabilities)
        origins = _pass_origins(generated, compiled)
        network = _network(part, moves, constants, given, computed, unsigned)
        return OperatorCode(
            part=part,
            model=read_network(network, part.graph.name),
            network=network,
            compiler=COMPILER,
            origins=_origins(compiled, origins),
            costs=_costs(compiled, estimated),
            constants=constants,
            given=given,
            computed=computed,
            edge=_edge(moves, given, computed),
            program=program_with(compiled.container, capabilities, compiled.commands),
        )


class ChannelsFirstRegions(EthosNRegions):
    """Compiles regions of graphs that have channels first, as PyTorch's programs do.

    The order of axes that is best for the whole graph need not be that of a region, whose edges
    the CPU moves as it likes: a region is brought into form, and covered, for itself.
    """

    def legality(self, graph: Graph) -> Legal:
        """Return a function that tells why a group of a graph's operations is not on the NPU.

        Judged is a copy, in the form that the NPU has.
        """
        groups = {operation.group for operation in graph if operation.group is not None}
        copy = extract(graph, groups).graph
        apart, _ = _channels_last(copy)
        of_copy = super().legality(copy)
        reasons = {
            operation.group: of_copy(operation)
            for operation in copy
            if operation.group not in apart
        }
        return lambda operation: reasons.get(operation.group, ())

    def _prepared(self, part: Extracted) -> tuple[Mapping[int, int], EdgeTransposes]:
        return _channels_last(part.graph)

    def _generated(self, part: Extracted) -> Generated:
        return generate(part.graph, self._configuration)


def _channels_last(graph: Graph) -> tuple[Mapping[int, int], EdgeTransposes]:
    """Bring a graph into the NPU's form, with channels last; the CPU moves its edges."""
    outside = images_last(graph)
    return prepare(graph), take_out_views(graph, outside)


def _reason(error: MizzenError) -> Reason:
    diagnostic = error.diagnostic
    return Reason(
        "compiler",
        diagnostic.message,
        help=diagnostic.help or "",
        source=diagnostic.rule or COMPILER,
    )


def _at(part: Extracted, origin: Origin | None) -> set[int]:
    """Return the groups of the operator that an error is about."""
    if origin is None:
        return set()
    return {
        operation.group
        for operation in part.graph
        if operation.origin == origin and operation.group is not None
    }


def _groups(part: Extracted) -> list[int]:
    return list(
        dict.fromkeys(operation.group for operation in part.graph if operation.group is not None)
    )


def _computed(generated: Generated, compiled: CompiledNetwork) -> tuple[int, ...]:
    """Return which output of the region each output buffer of the container is."""
    operands = [(operand.operation_id, operand.output_index) for operand in generated.outputs]
    return tuple(
        operands.index((buffer.source_operation_id, buffer.source_output_index))
        for buffer in compiled.outputs
    )


def _edge(moves: EdgeTransposes, given: Sequence[int], computed: Sequence[int]) -> Edge:
    """Return how the CPU moves the tensors of the operator, in its order."""
    return Edge(
        tuple(_move(moves.inputs[index]) for index in given),
        tuple(_move(moves.outputs[index]) for index in computed),
    )


def _move(moved: Movement | None) -> EdgeMove:
    return EdgeMove() if moved is None else EdgeMove(moved.shape, moved.perms)


def _network(
    part: Extracted,
    moves: EdgeTransposes,
    constants: Sequence[bytes],
    given: Sequence[int],
    computed: Sequence[int],
    unsigned: bool,
) -> bytes:
    """Return a TFLite network of the region's operator, and of what moves its tensors."""
    builder = NetworkBuilder(COMPILER)
    tensors = _Tensors(builder, unsigned)
    inputs = [tensors.add(value, value.shape) for value in part.inputs]
    outputs = [tensors.add(value, value.shape) for value in part.outputs]
    inner = [
        index if move is None else _add_input_move(tensors, value, index, move)
        for value, index, move in zip(part.inputs, inputs, moves.inputs, strict=True)
    ]
    made = [
        index if move is None else tensors.add(value, move.shape, NPU_SUFFIX)
        for value, index, move in zip(part.outputs, outputs, moves.outputs, strict=True)
    ]
    held = [
        builder.constant(f"{ETHOS_N.code}_{index}", np.frombuffer(data, np.uint8))
        for index, data in enumerate(constants)
    ]
    builder.operator(
        ETHOS_N.code,
        [*held, *(inner[index] for index in given)],
        [made[index] for index in computed],
    )
    for value, index, source, move in zip(part.outputs, outputs, made, moves.outputs, strict=True):
        if move is not None:
            _add_output_move(tensors, value, source, index, move)
    return builder.finish(inputs, outputs)


@dataclass(frozen=True, slots=True)
class _Tensors:
    """Adds the tensors of values to a network; their bytes are unsigned if the NPU's are."""

    builder: NetworkBuilder
    unsigned: bool

    def add(self, value: Value, shape: Shape, suffix: str = "") -> int:
        quantization = value.quantization
        name = f"{value.name}{suffix}"
        dtype, offset = (np.uint8, OFFSET) if self.unsigned else (value.dtype.numpy, 0)
        if quantization is None:
            return self.builder.tensor(name, shape, dtype)
        zero_points = [zero_point + offset for zero_point in quantization.zero_points]
        return self.builder.tensor(name, shape, dtype, quantization.scales, zero_points)


def _add_input_move(tensors: _Tensors, value: Value, source: int, move: Movement) -> int:
    """Add an input as the NPU takes it, and what moves it."""
    if move.shape != value.shape:
        whole = source
        source = tensors.add(value, move.shape, SHAPED_SUFFIX)
        _reshape(tensors.builder, whole, source, move.shape)
    index = tensors.add(value, move.result, NPU_SUFFIX)
    _transpose(tensors.builder, source, index, move)
    return index


def _add_output_move(
    tensors: _Tensors, value: Value, made: int, target: int, move: Movement
) -> None:
    """Move an output from what the NPU gives."""
    if move.result == value.shape:
        _transpose(tensors.builder, made, target, move)
        return
    moved = tensors.add(value, move.result, SHAPED_SUFFIX)
    _transpose(tensors.builder, made, moved, move)
    _reshape(tensors.builder, moved, target, value.shape)


def _transpose(builder: NetworkBuilder, source: int, target: int, move: Movement) -> None:
    axes = builder.constant(f"axes_{target}", np.asarray(move.perms, np.int32))
    builder.operator("TRANSPOSE", [source, axes], [target], ("TransposeOptions", {}))


def _reshape(builder: NetworkBuilder, source: int, target: int, shape: Shape) -> None:
    numbers = np.asarray(shape, np.int32)
    wanted = builder.constant(f"shape_{target}", numbers)
    options = ("ReshapeOptions", {"new_shape": numbers})
    builder.operator("RESHAPE", [source, wanted], [target], options)


def _pass_origins(generated: Generated, compiled: CompiledNetwork) -> list[Origin | None]:
    """Return the operator of the first operation in each pass."""
    of_passes: list[Origin | None] = []
    for pass_ in compiled.passes:
        origins = [generated.network[operation].origin for operation in sorted(pass_.operation_ids)]
        of_passes.append(next((origin for origin in origins if origin is not None), None))
    return of_passes


def _origins(compiled: CompiledNetwork, origins: Sequence[Origin | None]) -> dict[int, Origin]:
    """Return the operator of each command, by the command's byte offset."""
    pairs = zip(offsets(compiled.commands), origins, strict=True)
    return {offset: origin for offset, origin in pairs if origin is not None}


def _costs(compiled: CompiledNetwork, estimated: Estimated) -> Costs:
    container = compiled.container
    constants = len(container.constant_dma) + len(container.constant_control_unit)
    areas = (
        Area("constants", "Dram", constants),
        Area("arena", "Dram", compiled.intermediate_bytes),
    )
    return Costs(areas, performance=as_data(estimated))
