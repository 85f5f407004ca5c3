"""A compiled network, ready to run, and sessions in which its state goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mizzen.artifact.batching import Batch, arrange, batch_of, parts_of
from mizzen.artifact.execution import Contents, KeptState, NoState, execute
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import NpuStep, Step
from mizzen.diagnostics import Diagnostic, fail

if TYPE_CHECKING:
    from mizzen.report import CompileReport


class Artifact:
    """A compiled network.

    inputs, outputs  what an inference takes and gives
    steps            NPU operators, and runs of CPU operators between them, in order
    accelerator      the configuration that NPU operators are for, None without any
    report           what the compilation said, where it is known
    """

    def __init__(
        self, data: bytes, name: str, contents: Contents, report: CompileReport | None = None
    ) -> None:
        self.data = data
        self.name = name
        self.report = report
        self.contents = contents
        self.inputs = tuple(contents.infos[index] for index in contents.inputs)
        self.outputs = tuple(contents.infos[index] for index in contents.outputs)
        self.steps = contents.steps
        self.accelerator = _accelerator(self.steps, name)

    def run(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Infer a batch; each inference starts from the initial state.

        An array is `[N, *shape[1:]]` where the input's first extent is 1, or `[N, *shape]`; an
        array of exactly the input's shape is one inference. Outputs come in the same form: one
        array, or a tuple of several. Raises E711 to E713 for arrays that do not fit, E6xx for
        faults of the NPU, E701 to E705 where the CPU's kernels fail.
        """
        batch = batch_of(arrays, self.inputs)
        return self._infer(batch, lambda _: NoState())

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What there is to know about the NPU's part: paths whose meaning is only inferred."""
        steps = (step for step in self.steps if isinstance(step, NpuStep))
        return tuple(note for step in steps for note in step.simulator.notes)

    @property
    def hazards(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the order of accesses to memory in the NPU's part; empty if nothing.

        Errors E671 to E673 for accesses that may happen in either order, E674 for reads of bytes
        that nothing wrote, E675 for accesses outside the declared memory, E676 for outputs that
        are not written. Raises as `mizzen.targets.ethos_u.hazards.find_hazards`.
        """
        reports = (step.hazards for step in self.steps if isinstance(step, NpuStep))
        return tuple(found for report in reports for found in report.diagnostics)

    def session(self, batch: int = 1) -> Session:
        """Start `batch` independent streams of inferences whose state goes on."""
        return Session(self, batch)

    def save(self, path: str | Path) -> None:
        """Write the artifact, and the report of its compilation beside it if there is one."""
        target = Path(path)
        target.write_bytes(self.data)
        if self.report is not None:
            from mizzen.report import write_sidecar

            write_sidecar(self.report, target)

    def _infer(self, batch: Batch, state_of: Callable[[int], NoState]) -> Array | tuple[Array, ...]:
        """Infer a batch in parts; `state_of` gives the state of each, by its place."""
        arena = self.contents.arena
        parts = parts_of(batch, batch.size if arena is None else arena.largest_batch)
        found = [execute(self.contents, part, state_of(place)) for place, part in enumerate(parts)]
        joined = [np.concatenate(rows) for rows in zip(*found, strict=True)]
        outputs = arrange(joined, self.outputs, batch)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class Session:
    """Inferences whose state tensors go on from call to call, for `batch` streams at once."""

    def __init__(self, artifact: Artifact, batch: int = 1) -> None:
        if batch < 1:
            raise fail("E713", f"a session needs a batch of at least 1, not {batch}")
        self._artifact = artifact
        self._batch = batch
        self._states: defaultdict[int, KeptState] = defaultdict(KeptState)

    def run(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Infer once for every stream; arrays and outputs as for `Artifact.run`."""
        batch = batch_of(arrays, self._artifact.inputs, without_inputs=self._batch)
        if batch.size != self._batch:
            raise fail(
                "E713",
                f"every call of this session must bring a batch of {self._batch}, not {batch.size}",
                help="a session keeps one state for each stream; start another for another batch",
            )
        return self._artifact._infer(batch, self._states.__getitem__)  # pyright: ignore[reportPrivateUsage] a session is its artifact's other half


def _accelerator(steps: Sequence[Step], name: str) -> str | None:
    found = {step.accelerator for step in steps if isinstance(step, NpuStep)}
    if len(found) > 1:
        raise fail("E114", f"{name} must be for one accelerator, not for {sorted(found)}")
    return found.pop() if found else None
