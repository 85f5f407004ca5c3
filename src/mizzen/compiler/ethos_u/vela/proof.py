"""Prove a compiled TFLite network: execute its NPU operators on what the reference gives them.

Each NPU operator starts from the tensors that the reference computed, so one that is wrong does
not spoil the next; what an operator leaves in the arena for another stays there. Inside, results
of single operators are seen as the stream writes them, and compared as well (`watched`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.arena import ArenaValues
from mizzen.artifact.execution import Contents, NoState
from mizzen.artifact.interface import Values
from mizzen.artifact.steps import NpuStep
from mizzen.compiler.ethos_u.vela.alone import wrong_alone
from mizzen.compiler.ethos_u.vela.encoded import wrong_constants
from mizzen.compiler.ethos_u.vela.findings import Findings
from mizzen.compiler.ethos_u.vela.misread import left_to_cpu, same_on_cpu
from mizzen.compiler.ethos_u.vela.tables import wrong_table
from mizzen.compiler.ethos_u.vela.watched import judge
from mizzen.compiler.proof.accesses import require_order
from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.options import Effort
from mizzen.compiler.proof.written import Written, written
from mizzen.compiler.tflite_reference import why_not
from mizzen.compiler.tflite_truth import NetworkTruth
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.frontends.tflite.model import ABSENT
from mizzen.report.proof import Proof
from mizzen.targets.ethos_u.judge.sim.plan import Encoded
from mizzen.targets.ethos_u.judge.sim.watch import Watch
from mizzen.targets.ethos_u.vela.generate import Compiled

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

MOST_PASSES = 4
"""How often to ask the reference again with what the NPU says of operators it does not compute."""


class NetworkProof(NetworkTruth):
    """A network, inputs for it, what the reference says of them, and what Vela made of it."""

    def check(self, compiled: Compiled, network: Model, contents: Contents) -> Findings:
        """Execute what was compiled; `network` is `compiled.network`, read."""
        return _Check(self, compiled, network, contents).findings()


class _Check:
    """One compiled network against one reference."""

    def __init__(
        self, proof: NetworkProof, compiled: Compiled, network: Model, contents: Contents
    ) -> None:
        self.proof = proof
        self.model = proof.model
        self.count = proof.count
        self.network = network
        self.contents = contents
        self._left_to_cpu = left_to_cpu(compiled)
        self.commands: dict[int, list[tuple[int, int]]] = {}
        for row in compiled.commands:
            if row.operator is not None and row.operator < len(self.model.main.operators):
                place = self.commands.setdefault(row.stream, [])
                place.append((row.offset_bytes, row.operator))
        self.truth = proof.first
        self.written: dict[int, tuple[Written, ...]] = {}
        self.encoded: dict[int, dict[int, list[Encoded]]] = {}
        self.tables: dict[int, list[tuple[int, Bytes]]] = {}
        self.results: dict[int, dict[int, Array]] = {}
        self.left: dict[int, dict[int, Array]] = {}
        self.faults: dict[int, MizzenError] = {}
        self.wrong: dict[int, Difference] = {}
        self.suspects: list[tuple[tuple[int, ...], Difference]] = []
        self.unproved: dict[str, None] = {}
        self.equal = 0
        self.watched = set[int]()
        self.digest = sha256()

    def findings(self) -> Findings:
        """Execute every NPU operator that has inputs, and compare."""
        for _ in range(MOST_PASSES):
            self._execute()
            if not self._learns():
                break
        steps = [step for step in self.contents.steps if isinstance(step, NpuStep)]
        for place, step in enumerate(steps):
            if place in self.results:
                self._compare(place, step)
            elif place not in self.faults:
                self.unproved[f"all of NPU operator {place} because {self._why()}"] = None
        for index, why in sorted(self.truth.assumed.items()):
            for output in self.model.main.operators[index].outputs:
                self._leave_out(output, why)
        return Findings(self._proof(), self.wrong, self._faults(), tuple(self.suspects))

    def _proof(self) -> Proof:
        for array in self.proof.inputs:
            self.digest.update(np.ascontiguousarray(array).data)
        operators = self.model.main.operators
        return Proof(
            inputs=self.count if self.results else 0,
            seed=self.proof.options.seed,
            digest=self.digest.hexdigest(),
            parts=len(self.results),
            equal=self.equal,
            watched=len(self.watched),
            bounded=tuple(f"{operators[row].kind} {row}" for row in self._bounded()),
            unproved=tuple(self.unproved),
        )

    def _execute(self) -> None:
        """Execute the NPU operators in order; everything else is what the reference says."""
        values = self._memory()
        place = 0
        for step in self.contents.steps:
            if isinstance(step, NpuStep):
                self._give(values, step.inputs)
                self._run(place, step, values)
                place += 1
            else:
                self._give(values, step.outputs)

    def _memory(self) -> Values:
        values: Values = {}
        if self.contents.arena is not None:
            values = ArenaValues(self.contents.arena, self.count)
        self._give(values, self.contents.inputs)
        for index, constant in self.contents.constants.items():
            values[index] = np.broadcast_to(constant, (self.count, *constant.shape))
        return values

    def _give(self, values: Values, indices: Iterable[int]) -> None:
        """Put what the reference says of tensors into `values`."""
        for index in indices:
            array = self._value(index)
            if array is not None:
                values[index] = array

    def _run(self, place: int, step: NpuStep, values: Values) -> None:
        self._start(step, values)
        if any(index not in values for index in step.inputs):
            return
        commands = self.commands.get(place, [])
        try:
            watch = Watch([offset for offset, _ in commands])
            step.run_on(step.simulator.watched(watch), values, self.count)
            require_order(step)
        except MizzenError as error:
            self.faults[place] = error
            self._give(values, step.outputs)
            return
        self.written[place] = written(commands, watch.maps)
        self.encoded[place] = self._encoded(step, commands)
        tables: dict[int, Bytes] = step.simulator.plan.tables
        self.tables[place] = [(row, tables[at]) for at, row in sorted(commands) if at in tables]
        self.results[place] = {
            index: np.array(values[index])
            for row, index in enumerate(step.outputs)
            if row in step.final
        }
        self.left[place] = {row.index: np.array(values[row.index]) for row in step.variables}

    def _start(self, step: NpuStep, values: Values) -> None:
        """Give an NPU operator the state that the reference starts from, else the first one."""
        for row in step.variables:
            array = self.proof.state.get(self._state(row.index))
            if array is not None and array.shape[1:] == row.shape and array.dtype == row.dtype:
                values[row.index] = array
        NoState().provide(step.variables, values, self.count)

    def _state(self, index: int) -> int:
        """Return the model's tensor of state that one of the compiled network is, else ABSENT."""
        place = self._place(index)
        is_state = place is not None and self.model.main.tensors[place].variable
        return place if is_state and place is not None else ABSENT

    def _encoded(self, step: NpuStep, commands: list[tuple[int, int]]) -> dict[int, list[Encoded]]:
        """Return the constants of operators, in the order of their commands."""
        held: dict[int, Encoded] = step.simulator.plan.encoded
        found: dict[int, list[Encoded]] = {}
        for offset, operator in sorted(commands):
            if offset in held:
                found.setdefault(operator, []).append(held[offset])
        return found

    def _learns(self) -> bool:
        """Ask the reference again if it may say more now that the NPU's results are known."""
        known, values = self._known(), self.truth.values
        inexact = any(
            place in known
            and place in values
            and not np.array_equal(known[place], values[place])
            and self.proof.allowed(place, known[place], values[place])
            for place in self.proof.bounds
        )
        if self.truth.stopped is None and not inexact:
            return False
        before, self.truth = self.truth, self.proof.reference(known)
        return inexact or len(self.truth.values) > len(before.values)

    def _value(self, index: int) -> Array | None:
        """Return what the reference says of a tensor of the compiled network."""
        tensor = self.network.main.tensors[index]
        place = self._place(index)
        array = None if place is None else self.truth.values.get(place)
        if array is None or array.dtype != tensor.dtype:
            return None
        shape = (self.count, *tensor.shape)
        return array.reshape(shape) if array.size == np.prod(shape, dtype=np.int64) else None

    def _place(self, index: int) -> int | None:
        """Return the model's tensor that a tensor of the compiled network is."""
        for ours, theirs in (
            (self.network.main.inputs, self.model.main.inputs),
            (self.network.main.outputs, self.model.main.outputs),
        ):
            if index in ours:
                return theirs[ours.index(index)]
        found = self._names.get(self.network.main.tensors[index].name)
        return self._same_on_cpu.get(index) if found is None else found

    @cached_property
    def _same_on_cpu(self) -> dict[int, int]:
        """The model's tensors by those that operators on the CPU have in the compiled network."""
        return same_on_cpu(self.model, self.network, self._left_to_cpu)

    @cached_property
    def _names(self) -> dict[str, int]:
        """Tensors of the model by the names that only one of them has."""
        found: dict[str, list[int]] = {}
        for row in self.model.main.tensors:
            found.setdefault(row.name, []).append(row.index)
        return {name: rows[0] for name, rows in found.items() if len(rows) == 1}

    def _known(self) -> dict[int, Array]:
        """Return what NPU operators say of the model's tensors."""
        known: dict[int, Array] = {}
        main = self.model.main
        maps = [row for rows in self.written.values() for row in rows]
        for row in maps:
            for tensor in main.present(main.operators[row.operator].outputs):
                for array in row.as_tensor(tensor.shape, tensor.dtype, self.count):
                    known[tensor.index] = array
        for results in self.results.values():
            for index, array in results.items():
                place = self._place(index)
                if place is not None:
                    known[place] = array.reshape(self.count, *main.tensors[place].shape)
        return known

    def _compare(self, place: int, step: NpuStep) -> None:
        """Compare what an NPU operator gave, and what was seen inside, with the reference."""
        for index, found in self._constants(place):
            if found is not None:
                self.wrong[index] = found
                return
        seen = set[int]()
        values = self.truth.values.items()
        computed = {index: array for index, array in values if index not in self._assumed}
        for row in self.written.get(place, ()):
            found = judge(row, self.model, computed, self.count)
            if isinstance(found, Difference):
                self.wrong[row.operator] = found
                return
            if found:
                seen.add(row.operator)
        self.watched |= seen
        for index, found in self._alone(place, step, seen):
            if found is not None:
                self.wrong[index] = found
                return
        self._compare_outputs(place, seen)

    @property
    def _assumed(self) -> set[int]:
        """Tensors of the model that are what the NPU says, because nothing else computes them."""
        operators = self.model.main.operators
        return {output for index in self.truth.assumed for output in operators[index].outputs}

    def _leave_out(self, place: int | None, why: str, index: int = ABSENT) -> None:
        """Note that a tensor of the model, or `index` of what was compiled, was not compared."""
        main = self.model.main
        if place is None or place == ABSENT:
            said = f'"{self.network.main.tensors[index].name}"'
        else:
            maker = next((row for row in main.operators if place in row.outputs), None)
            of = "" if maker is None else f" ({maker.kind} {maker.index})"
            said = f'"{main.tensors[place].name}"{of}'
        self.unproved[f"{said} because {why}"] = None

    def _compare_outputs(self, place: int, seen: set[int]) -> None:
        for index, array in self.left[place].items():
            self._compare_state(index, array)
        for index, array in self.results[place].items():
            if self._state(index) != ABSENT:
                continue  # what the state is on the way, which is for the operator alone
            self.digest.update(np.ascontiguousarray(array).data)
            reference = self._value(index)
            if reference is None:
                self._leave_out(self._place(index), self._why(), index)
                continue
            if self._place(index) in self._assumed:
                continue  # it would be compared with itself
            found = difference(array, reference)
            if found is None:
                self.equal += 1
            else:
                self.suspects.append((self._sources(index, seen), found))

    def _compare_state(self, index: int, array: Array) -> None:
        """Compare what an NPU operator leaves for the next inference."""
        place = self._state(index)
        reference = self.truth.after.get(place)
        if reference is None:
            self._leave_out(place, self._why(), index)
            return
        found = difference(array, reference.reshape(array.shape))
        if found is None:
            self.equal += 1
            return
        keepers = (row.index for row in self.model.main.operators if place in row.inputs)
        self.suspects.append((tuple(keepers), found))

    def _alone(
        self, place: int, step: NpuStep, seen: set[int]
    ) -> Iterator[tuple[int, Difference | None]]:
        """Return how operators that are seen to be right differ on inputs of their own.

        It takes a third of a quick proof's time, so only thorough ones do it.
        """
        simulator, proof = step.simulator, self.proof
        if proof.options.effort is not Effort.THOROUGH:
            return
        for index in sorted(seen):
            commands = {offset for offset, row in self.commands.get(place, ()) if row == index}
            operator = self.model.main.operators[index]
            given = proof.lowered, operator, self.truth.values, proof.kernels, proof.options.seed
            yield index, wrong_alone(simulator, commands, *given)

    def _constants(self, place: int) -> Iterator[tuple[int, Difference | None]]:
        """Return how the constants of operators differ from the model's."""
        operators = self.model.main.operators
        for index, encoded in self.encoded.get(place, {}).items():
            yield index, wrong_constants(self.model, operators[index], encoded)
        for index, table in self.tables.get(place, ()):
            yield index, wrong_table(self.proof.lowered, operators[index], table)

    def _sources(self, index: int, seen: set[int]) -> tuple[int, ...]:
        """Return operators that an output depends on, by way of none that was seen to be right."""
        main = self.model.main
        makers = {tensor: row for row in main.operators for tensor in row.outputs}
        place = self._place(index)
        tensors = [] if place is None else [place]
        found: dict[int, None] = {}
        while tensors:
            row = makers.get(tensors.pop(0))
            if row is not None and row.index not in found:
                found[row.index] = None
                tensors += [i for i in row.inputs if i in makers and makers[i].index not in seen]
        return tuple(found)

    def _why(self) -> str:
        stopped = self.truth.stopped
        if stopped is None:
            return "it is not known which tensor of the model it is"
        return why_not(stopped)

    def _faults(self) -> dict[int, MizzenError]:
        """Return faults by the operator of the model, the first of an NPU operator's if unknown."""
        found: dict[int, MizzenError] = {}
        for place, error in self.faults.items():
            origin = error.diagnostic.origin
            rows = [operator for _, operator in self.commands.get(place, [])]
            known = origin.operator if origin is not None else None
            index = known if known is not None else next(iter(rows or self._makers(place)), None)
            if index is None:
                raise error
            found[index] = error
        return found

    def _makers(self, place: int) -> Iterator[int]:
        """Return the operators of the model whose results an NPU operator gives."""
        steps = [step for step in self.contents.steps if isinstance(step, NpuStep)]
        given = {self._place(index) for index in steps[place].outputs}
        for row in self.model.main.operators:
            if given & set(row.outputs):
                yield row.index

    def _bounded(self) -> Iterator[int]:
        """Return the operators whose results differ within their bound."""
        known, values = self._known(), self.proof.first.values
        for row in self.model.main.operators:
            if any(
                place in self.proof.bounds
                and place in known
                and place in values
                and not np.array_equal(known[place], values[place])
                for place in row.outputs
            ):
                yield row.index
