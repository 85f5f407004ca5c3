"""Run networks as the integers of their graphs, in NumPy: what has such a form needs no kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.numpy_kernels import computed as computed_in_numpy
from mizzen.cpu.numpy_kernels import is_computed
from mizzen.cpu.tflm import KernelRefusalError
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity
from mizzen.frontends.tflite import Model, Operator, read
from mizzen.frontends.tflite.variables import VARIABLE_KINDS

if TYPE_CHECKING:
    from mizzen.frontends.tflite.lower import Lowered
    from mizzen.ops.control_flow import Custom
    from mizzen.reference import CustomKernel

Array = npt.NDArray[Any]


class GraphKernels:
    """A network as the integers of its graph, in NumPy."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form."""
        from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
        from mizzen.reference import evaluate_batch

        count = len(inputs[0]) if batch is None else batch
        main = self._lowered.model.main
        taken, made = main.present(main.inputs), main.present(main.outputs)
        given = [to_graph(tensor, array) for tensor, array in zip(taken, inputs, strict=True)]
        outputs = evaluate_batch(
            self._lowered.graph, given, count, custom=_kernel_of(self._lowered)
        )
        return [from_graph(tensor, array) for tensor, array in zip(made, outputs, strict=True)]


class ReferenceKernels:
    """A network as integers in NumPy, in the place of a device's kernels.

    `operators` says where each of its operators comes from, in order, for diagnostics.

    Raises, when it is run, E702 for what has no such form.
    """

    def __init__(self, network: bytes, operators: Sequence[Origin] = ()) -> None:
        self._network = network
        self._origin = operators[0] if len(operators) == 1 else None
        self._kernels: GraphKernels | None = None

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form.

        Every inference starts from the initial state. `batch` is needed if there are no inputs.
        """
        if self._kernels is None:
            model = read(self._network, "")
            self._kernels = None if _keeps_state(model) else graph_kernels(model)
        if self._kernels is not None:
            return self._kernels.run(inputs, batch)
        count = len(inputs[0]) if batch is None else batch
        return self.session(count).run(inputs, count)

    def session(self, batch: int = 1) -> GraphSession:
        """Open a session, in which each of `batch` elements keeps its state."""
        from mizzen.frontends.tflite.lower import lower_with_state

        try:
            lowered = lower_with_state(read(self._network, ""))
        except MizzenError as error:
            raise self._refused(error.diagnostic.message) from None
        missing = next(_custom(lowered), None)
        if missing is not None:
            raise self._refused(f"{missing} has no form in TOSA's integers")
        return GraphSession(lowered, batch)

    def _refused(self, said: str) -> KernelRefusalError:
        diagnostic = Diagnostic(
            "E702",
            f"Mizzen's integer reference must take the operators left on the CPU, but says: {said}",
            Severity.ERROR,
            self._origin,
            help="install a C compiler or ziglang, for Mizzen's C kernels",
        )
        return KernelRefusalError(diagnostic, said)


class GraphSession:
    """A network as integers, with the variables of each element of a batch."""

    def __init__(self, lowered: Lowered, batch: int) -> None:
        self._lowered = lowered
        self._variables: list[dict[str, Array]] = [{} for _ in range(batch)]

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element, from the state that the call before left."""
        from mizzen.frontends.tflite.tflite_tensors import from_graph, to_graph
        from mizzen.reference import evaluate

        assert batch in {None, len(self._variables)}
        main = self._lowered.model.main
        taken, made = main.present(main.inputs), main.present(main.outputs)
        results: list[list[Array]] = []
        for element, variables in enumerate(self._variables):
            given = [
                to_graph(tensor, array[element])
                for tensor, array in zip(taken, inputs, strict=True)
            ]
            results.append(
                evaluate(
                    self._lowered.graph,
                    given,
                    variables=variables,
                    custom=_kernel_of(self._lowered),
                )
            )
        columns = [np.stack(column) for column in zip(*results, strict=True)]
        return [from_graph(tensor, array) for tensor, array in zip(made, columns, strict=True)]


def _keeps_state(model: Model) -> bool:
    kinds = {operator.kind for operator in model.main.operators}
    return bool(kinds & VARIABLE_KINDS) or any(tensor.variable for tensor in model.main.tensors)


def _custom(lowered: Lowered) -> Iterator[str]:
    """Return the names of operators that have no form as integers here."""
    from mizzen.ops.control_flow import Custom

    for operation in lowered.graph:
        if not isinstance(operation, Custom):
            continue
        if not is_computed(lowered.model, _operator_of(lowered, operation)):
            yield operation.operator_name


def _operator_of(lowered: Lowered, operation: Custom) -> Operator:
    from mizzen.frontends.tflite.context import note_of

    return lowered.model.main.operators[note_of(operation).operator]


def _kernel_of(lowered: Lowered) -> CustomKernel:
    """Return what computes the operators of a graph that TOSA has no form of, and NumPy has."""

    def computed(operation: Custom, operands: Sequence[Array]) -> list[Array]:
        result = computed_in_numpy(lowered.model, _operator_of(lowered, operation), operands[0])
        assert result is not None, "it was looked at before"
        return [result]

    return computed


def graph_kernels(model: Model) -> GraphKernels | None:
    """Return a network that keeps no state as integers, if all of it has such a form."""
    from mizzen.frontends.tflite.lower import lower

    try:
        lowered = lower(model)
    except MizzenError:
        return None
    return GraphKernels(lowered) if next(_custom(lowered), None) is None else None
