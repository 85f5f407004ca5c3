"""A compiled network, ready to run, and sessions in which its state goes on."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mizzen.artifact.batching import Batch, arrange, batch_of, in_order, parts_of
from mizzen.artifact.decoding import (
    Choice,
    Decoder,
    Decoding,
    NextToken,
    decoder_of,
    greedy,
    prompt_of,
)
from mizzen.artifact.execution import Contents, KeptState, execute, execute_in_parts
from mizzen.artifact.interface import Array, Example
from mizzen.artifact.steps import CpuStep, NpuStep, Step
from mizzen.artifact.views import signature_contents, subgraphs_of, within
from mizzen.diagnostics import Diagnostic, fail
from mizzen.files import write_files

if TYPE_CHECKING:
    from mizzen.report import CompileReport
    from mizzen.report.manifest import Manifest


class Artifact:
    """A compiled network.

    Running changes nothing in it, so any number of threads may run one at once, and processes that
    are forked go on with it. A copy shares its steps; pickled, it is read again from its bytes.

    inputs, outputs  what an inference takes and gives
    steps            NPU operators, and runs of CPU operators between them, in order
    accelerator      the configuration that NPU operators are for, None without any
    report           what the compilation said, where it is known
    doubts           why its file may not be what was compiled
    examples         inputs with what is expected of them, where its file has such

    Where a network has several subgraphs, all of these are the main one's, but for `accelerator`,
    `notes`, `hazards` and `report`, which are of all; `signature` and `subgraphs` give the others.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        contents: Contents,
        report: CompileReport | None = None,
        doubts: tuple[Diagnostic, ...] = (),
        view: View | None = None,
        examples: tuple[Example, ...] = (),
    ) -> None:
        self.data = data
        self.name = name
        self.report = report
        self.doubts = doubts
        self.examples = examples
        self.contents = contents
        self.inputs = tuple(contents.infos[index] for index in contents.inputs)
        self.outputs = tuple(contents.infos[index] for index in contents.outputs)
        self.steps = contents.steps
        self.accelerator = _accelerator(self._every_step, name)
        self._view = view
        self._views: dict[tuple[int, str | None], Artifact] = {}

    @property
    def _every_step(self) -> tuple[Step, ...]:
        return tuple(step for part in within(self.contents) for step in part.steps)

    @property
    def manifest(self) -> Manifest | None:
        """The manifest in the file, with digests of it; None without one, as of other compilers."""
        from mizzen.report.manifest import manifest_in

        return manifest_in(self.data)

    @property
    def title(self) -> str:
        """The subgraph's name; empty if there is only one."""
        return self.contents.title

    @property
    def subgraphs(self) -> tuple[Artifact, ...]:
        """Each subgraph that has steps, the main one first; itself where there is one."""
        if not self.contents.others:
            return (self,)
        return tuple(self._viewed(part, None) for part in subgraphs_of(self.contents))

    @property
    def signatures(self) -> tuple[str, ...]:
        """The names of what can be executed besides the main subgraph, or as it."""
        return tuple(signature.name for signature in self.contents.signatures)

    def signature(self, name: str) -> Artifact:
        """Return an artifact that executes a signature, whose inputs and outputs have its names.

        Its file is a network of that signature alone. Raises E135 if there is none of that name.
        """
        return self._viewed(signature_contents(self.contents, name, self.name), name)

    def report_of(self, contents: Contents) -> CompileReport | None:
        """Return the compilation's report of a subgraph of the network."""
        whole = self.report if self._view is None else self._view.whole.report
        return None if whole is None else whole.of_subgraph(contents.title)

    def _viewed(self, contents: Contents, signature: str | None) -> Artifact:
        key = contents.index, signature
        if key not in self._views:
            from mizzen.artifact.alone import file_alone

            data = file_alone(self.data, self.name, contents.index)
            view, report = View(self, *key), self.report_of(contents)
            self._views[key] = Artifact(data, self.name, contents, report, self.doubts, view)
        return self._views[key]

    def run(self, *arrays: Any, **named: Any) -> Array | tuple[Array, ...]:
        """Infer a batch; each inference starts from the initial state.

        An array is `[N, *shape[1:]]` where the input's first extent is 1, or `[N, *shape]`; an
        array of exactly the input's shape is one inference. Tensors of PyTorch's are taken too.
        Inputs come in order, by keyword, or in one dict by name. Floats for an input of
        integers are quantised with its scale and zero point. Outputs come in the inputs' form: one
        array, or a tuple of several, whose names are those of `outputs`. Raises E711 to E713 and
        E208 for arrays that do not fit, E6xx for faults of the NPU, E701 to E705 where the CPU's
        kernels fail.
        """
        batch = batch_of(in_order(arrays, named, self.inputs), self.inputs)
        return self._arranged(execute_in_parts(self.contents, batch), batch)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """Notes and warnings: doubts, paths of the NPU whose meaning is only inferred, and
        operators on the CPU that a device computes differently.
        """
        steps = self._every_step
        on_npu = (step.notes for step in steps if isinstance(step, NpuStep))
        on_cpu = (step.notes for step in steps if isinstance(step, CpuStep))
        return (*self.doubts, *(note for notes in (*on_npu, *on_cpu) for note in notes))

    @property
    def hazards(self) -> tuple[Diagnostic, ...]:
        """Hazards: accesses to memory of the NPU's part whose order is not guaranteed.

        Errors E671 to E673 for accesses that may happen in either order, E674 for reads of bytes
        that nothing wrote, E675 for accesses outside the declared memory, E676 for outputs that
        are not written. Raises as `mizzen.targets.ethos_u.judge.hazards.find_hazards`.
        """
        reports = (step.hazards for step in self._every_step if isinstance(step, NpuStep))
        return tuple(diagnostic for report in reports for diagnostic in report.diagnostics)

    @property
    def decoder(self) -> Decoder:
        """Which of its tensors are what of a language model. E731 where it is none."""
        return decoder_of(self.contents, self.name)

    def session(self, batch: int = 1) -> Session:
        """Start `batch` independent streams of inferences whose state goes on."""
        return Session(self, batch)

    def save(self, path: str | Path, *, ptd: str | Path | None = None) -> None:
        """Write the artifact, and the report of its compilation beside it if there is one.

        The name says what is written: ``.pte`` is an ExecuTorch program, for which nothing of
        ExecuTorch need be installed; else it must end as `name` does.

        ptd  a file ``.ptd`` that gets weights and constants of an ExecuTorch program, which then
             names what it needs of them. Those of another program have other names

        Raises E180 for another ending, E824 for a `ptd` of no ExecuTorch program, E45x and E174 to
        E176 for what an ExecuTorch program cannot hold, E201 and E207 where the files cannot be
        written.
        """
        write_files(self.files(Path(path), None if ptd is None else Path(ptd)))

    def files(self, path: Path, ptd: Path | None = None) -> dict[Path, bytes]:
        """Return the files that `save` writes."""
        from mizzen.artifact.saving import bytes_for, bytes_in_two

        beside: dict[Path, bytes] = {}
        if ptd is None:
            data = bytes_for(self, path.suffix)
        else:
            data, beside[ptd] = bytes_in_two(self, path.suffix, ptd.suffix)
        if self.report is None:
            return {path: data} | beside
        from mizzen.report import sidecar, sidecar_path

        # An ExecuTorch program takes the floats, so the conversions are part of its inference.
        report = self.report if data is self.data else self.report.with_conversions()
        return {path: data, sidecar_path(path): sidecar(report, data)} | beside

    def __repr__(self) -> str:
        """Return a short description: ``<Artifact x_vela.tflite for ethos-u55-128, ...>``."""
        takes, gives = (
            ", ".join(f"{info.dtype}{list(info.shape)}" for info in infos)
            for infos in (self.inputs, self.outputs)
        )
        steps = f"{sum(step.on_npu for step in self.steps)} of {len(self.steps)} steps on the NPU"
        return f"<Artifact {self.name} for {self.accelerator}, {steps}: {takes} -> {gives}>"

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    def __copy__(self) -> Artifact:
        """Return another artifact of the same steps."""
        return Artifact(
            self.data, self.name, self.contents, self.report, self.doubts, self._view,
            self.examples,
        )  # fmt: skip

    def __deepcopy__(self, memo: dict[int, Any]) -> Artifact:
        """Return another artifact of the same steps: nothing in them ever changes."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[..., Artifact], tuple[object, ...]]:
        """Return a function that makes the artifact again in another process, of its bytes."""
        from mizzen.artifact.reading import whole

        if self._view is not None:
            return View.again, (self._view,)
        return _restored, (
            whole(self.data, self.name, self.contents), self.data, self.name, self.report,
            self.doubts, self.examples,
        )  # fmt: skip

    def _infer(
        self, batch: Batch, states: dict[int, KeptState], largest: int
    ) -> Array | tuple[Array, ...]:
        """Infer a batch in parts, whose states go by their place and the subgraph."""
        results = [
            execute(self.contents, part, states[place].of(self.contents.index))
            for place, part in enumerate(parts_of(batch, largest))
        ]
        joined = [np.concatenate(outputs) for outputs in zip(*results, strict=True)]
        return self._arranged(joined, batch)

    def _arranged(self, arrays: Sequence[Array], batch: Batch) -> Array | tuple[Array, ...]:
        outputs = arrange(arrays, self.outputs, batch)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What of a whole artifact another one shows.

    signature  its name; None for the subgraph `index`
    """

    whole: Artifact
    index: int
    signature: str | None = None

    def again(self) -> Artifact:
        """Return the artifact that shows it."""
        if self.signature is not None:
            return self.whole.signature(self.signature)
        return next(part for part in self.whole.subgraphs if part.contents.index == self.index)


def _restored(
    whole: bytes,
    data: bytes,
    name: str,
    report: CompileReport | None,
    doubts: tuple[Diagnostic, ...],
    examples: tuple[Example, ...] = (),
) -> Artifact:
    from mizzen.artifact.reading import contents_from

    origins = () if report is None else report.origins
    contents = contents_from(whole, name, origins)
    return Artifact(data, name, contents, report, doubts, examples=examples)


class Session:
    """Inferences whose state tensors go on from call to call, for `batch` streams at once.

    Calls of several threads take their turns. Its state is in one process and cannot be copied.
    """

    def __init__(self, artifact: Artifact, batch: int = 1) -> None:
        if batch < 1:
            raise fail("E713", f"a session needs a batch of at least 1, not {batch}")
        self._artifact = artifact
        self._batch = batch
        self._states: defaultdict[int, KeptState] = defaultdict(KeptState)
        arenas = (part.arena for part in within(artifact.contents))
        self._largest = min(
            [batch, *(arena.largest_batch for arena in arenas if arena is not None)]
        )
        self._turn = threading.Lock()
        self._failed = False
        self._decoding: Decoding | None = None
        self._process = os.getpid()

    def run(
        self, *arrays: Any, signature: str | None = None, **named: Any
    ) -> Array | tuple[Array, ...]:
        """Infer once for every stream; arrays and outputs as for `Artifact.run`.

        Of several signatures any may be executed at each call: variables go on between them.
        Raises E713 for another batch too, E715 in a process forked since, E705 if CPU operators
        have lost their state, E717 after a call that failed between two steps.
        """
        if os.getpid() != self._process:
            raise fail(
                "E715",
                f"a session must be run in the process that started it, {self._process}, not in "
                f"{os.getpid()}",
                help="start a session of the artifact in each process",
            )
        artifact = self._artifact if signature is None else self._artifact.signature(signature)
        given = in_order(arrays, named, artifact.inputs)
        batch = batch_of(given, artifact.inputs, without_inputs=self._batch)
        if batch.size != self._batch:
            raise fail(
                "E713",
                f"every call of this session must bring a batch of {self._batch}, not {batch.size}",
                help="a session keeps one state for each stream; start another for another batch",
            )
        with self._turn:
            return self._next(artifact, batch)

    def generate(
        self, prompt: Any, tokens: int | None = None, choose: Choice = greedy
    ) -> Iterator[NextToken]:
        """Continue a text with a language model: take a prompt, then each token that is chosen.

        prompt  tokens [streams, N], or [N] for every stream
        tokens  how many to give; without it until the context is full
        choose  takes scores, float32 [streams, vocabulary]; gives tokens [streams]

        A later call goes on after the last token. Raises E731 where the artifact is no decoder of
        one token at a time, E732 for a prompt that the context has no room for, E738 for one that
        is no array of tokens.
        """
        if self._decoding is None:
            self._decoding = Decoding(self._artifact.decoder, self.run)
        given = prompt_of(prompt, self._batch)
        return islice(self._decoding.after(given, choose), tokens)

    def _next(self, artifact: Artifact, batch: Batch) -> Array | tuple[Array, ...]:
        if self._failed:
            raise fail(
                "E717",
                "a session's calls must all succeed, and one failed when some of the state was new",
                help="start another session",
            )
        self._failed = True
        outputs = artifact._infer(batch, self._states, self._largest)  # pyright: ignore[reportPrivateUsage] a session is its artifact's other half
        self._failed = False
        return outputs

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: E716."""
        raise fail(
            "E716",
            "a session must stay one: its state cannot be copied, nor sent to another process",
            help="copy or send the artifact, and start another session of it",
        )


def _accelerator(steps: Sequence[Step], name: str) -> str | None:
    accelerators = {step.accelerator for step in steps if isinstance(step, NpuStep)}
    if len(accelerators) > 1:
        raise fail("E114", f"{name} must be for one accelerator, not for {sorted(accelerators)}")
    return accelerators.pop() if accelerators else None
