"""Run an artifact: NPU operators in the simulator, the others on CPU kernels."""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.configuration import (
    add_board_option,
    add_output_option,
    output_folder,
    read_file,
    require_on_board,
)
from mizzen.cli.console import Answer, Console, counted
from mizzen.cli.inputs import read_inputs
from mizzen.cli.layout import count, duration, fields, shape, table
from mizzen.cli.outputs import write_arrays
from mizzen.cli.placement import artifact_text
from mizzen.cli.samples import add_form_options, forms_of
from mizzen.diagnostics import fail
from mizzen.escaping import one_line
from mizzen.workers import use_one_thread

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.interface import TensorInfo
    from mizzen.compiler.tosa_reference import TosaReference

    Array = npt.NDArray[Any]

SUMMARY = "executes an artifact's command stream on this machine"
LONGEST_FILE_NAME = 128
SHOWN_VALUES = 10
PART = 64
"""Inferences after which progress is shown; more at once are hardly faster."""

TOSA = ".tosa"
"""How the names of TOSA files end."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "artifact",
        metavar="ARTIFACT",
        help="a compiled .tflite, .zip or .pte, or Vela's raw .npz; a .bpte, whose examples are "
        "run and compared where no input is given; or a .tosa file, executed as TOSA says",
    )
    add_data_option(parser)
    parser.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        nargs="+",
        default=(),
        help="one .npy, .bin, image or 16-bit .wav file, or a folder of them, for each input, in "
        "order or by name; or a .npz with all inputs; a leading axis of N, or N files, make a"
        " batch of N inferences; floats are quantised with the input's scale and zero point",
    )
    parser.add_argument(
        "--signature",
        metavar="NAME",
        help="execute a signature of the network instead of its main subgraph",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a stream with hazards, those of `mizzen inspect --hazards`",
    )
    parser.add_argument(
        "--accelerator-config", metavar="NAME", help="fail if the artifact is for another NPU"
    )
    add_board_option(parser, "the board that the artifact must be for: its NPU is compared")
    add_form_options(parser)
    add_output_option(parser, "one .npy file for each output")


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Run the artifact on the arrays and write its outputs."""
    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.batching import batch_of

    use_one_thread()
    artifact = _network(options, console)
    examples = artifact.examples if isinstance(artifact, Artifact) and not options.input else ()
    if isinstance(artifact, Artifact) and any(each.expected for each in examples):
        return _examples(options, artifact, console)
    arrays = (
        list(examples[0].inputs)
        if examples
        else read_inputs(options.input, artifact.inputs, console.note, forms_of(options))
    )
    if options.strict:
        with console.progress(f"looking for hazards in {options.artifact}"):
            failures = artifact.hazards
        if failures:
            return Answer(
                _head(options, artifact), "", failures=failures, diagnostics=artifact.doubts
            )
    start = time.perf_counter()
    with console.progress(f"running {options.artifact}") as show:
        outputs = _inferred(artifact, arrays, show)
    seconds = time.perf_counter() - start
    folder = output_folder(options)
    paths = [folder / name for name in file_names(artifact.outputs)]
    write_arrays(dict(zip(paths, outputs, strict=True)), folder)
    results = list(zip(artifact.outputs, outputs, paths, strict=True))
    inferences = batch_of(arrays, artifact.inputs).size
    document = {
        **_head(options, artifact),
        "inferences": inferences,
        "seconds": seconds,
        "outputs": [_data(*result) for result in results],
    }
    head = f"{count(inferences, 'inference')} in {duration(seconds)}"
    return Answer(document, _text(head, results, console), diagnostics=artifact.notes)


def _examples(options: argparse.Namespace, artifact: Artifact, console: Console) -> Answer:
    """Run the examples that came with an artifact, and compare with what they expect."""
    from mizzen.analysis.checking.examples import compare_examples

    with console.progress(f"running the examples of {options.artifact}"):
        compared = list(compare_examples(artifact))
    findings = [each.finding for each in compared if each.finding is not None]
    cells = [
        (str(each.example), each.output, str(each.numbers), str(each.differing),
         f"{each.largest:.6g}")
        for each in compared
    ]  # fmt: skip
    headings = ("example", "output", "numbers", "differing", "largest difference")
    return Answer(
        {**_head(options, artifact), "examples": [each.as_dict() for each in compared]},
        table(cells, width=console.width, headings=headings, right=(0, 2, 3, 4)),
        failures=findings,
        diagnostics=artifact.notes,
    )


def _inferred(
    network: Artifact | TosaReference, arrays: Sequence[Array], show: Callable[[str], None]
) -> Sequence[Array]:
    """Infer a batch, in parts where it is large, and show how far it is."""
    import numpy as np

    from mizzen.artifact.batching import arrange, batch_of, parts_of

    batch = batch_of(arrays, network.inputs)
    if batch.size <= PART:
        return _outputs(network.run(*arrays))
    done = counted(show, batch.size, "inference")
    results: list[Sequence[Array]] = []
    number = 0
    for part in parts_of(batch, PART):
        results.append(_outputs(network.run(*part.arrays)))
        number += part.size
        done(number)
    joined = [np.concatenate(column) for column in zip(*results, strict=True)]
    return arrange(joined, network.outputs, batch)


def _outputs(outputs: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _network(options: argparse.Namespace, console: Console) -> Artifact | TosaReference:
    """Return the network to run, and write what it is. E200 for a TOSA file and an accelerator."""

    path = Path(options.artifact)
    if path.suffix != TOSA:
        artifact = load_artifact(options, path)
        require_on_board(options, artifact)
        console.note(artifact_text(artifact, width=console.width))
        return artifact if options.signature is None else artifact.signature(options.signature)
    if options.signature is not None:
        raise fail("E200", "the command line is wrong: a .tosa file has no signatures",
                   help="leave out --signature")  # fmt: skip
    if options.accelerator_config is not None or options.board is not None:
        named = "--board" if options.accelerator_config is None else "--accelerator-config"
        raise fail(
            "E200",
            f"the command line is wrong: {path} is executed as TOSA says, for no accelerator",
            help=f"leave out {named}, or run what `mizzen compile {path}` makes",
        )
    from mizzen.compiler.tosa_reference import TosaReference

    reference = TosaReference(read_file(path), path.name)
    operations = count(len(reference.graph), "operation")
    facts = [("network", f"{path.name}, {operations}"), ("executed", "as TOSA 1.0 says, on no NPU")]
    console.note(fields(facts, width=console.width))
    return reference


def _head(options: argparse.Namespace, artifact: Artifact | TosaReference) -> dict[str, object]:
    signature = {} if options.signature is None else {"signature": options.signature}
    return {"artifact": str(options.artifact), "accelerator": artifact.accelerator, **signature}


def file_names(outputs: Sequence[TensorInfo]) -> list[str]:
    """Return every output a file name of its own: its name, with more where names repeat.

    Of a name that is longer than a file system takes, the beginning.
    """
    names: list[str] = []
    for i, info in enumerate(outputs):
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", info.name).strip("._")
        name = name[:LONGEST_FILE_NAME] or "output"
        while f"{name}.npy" in names:
            name += f"_{i}"
        names.append(f"{name}.npy")
    return names


def _data(info: TensorInfo, output: Array, path: Path) -> dict[str, object]:
    quantization = info.quantization
    return {
        "name": info.name,
        "shape": list(output.shape),
        "dtype": str(output.dtype),
        "scale": list(quantization.scale) if quantization else [],
        "zero_point": list(quantization.zero_point) if quantization else [],
        "file": str(path),
    }


def _text(head: str, results: Sequence[tuple[TensorInfo, Array, Path]], console: Console) -> str:
    cells = [
        (info.name, f"{output.dtype}{shape(output.shape)}", str(path))
        for info, output, path in results
    ]
    parts = [f"{one_line(head)}\n{table(cells, width=console.width)}".rstrip()]
    for info, output, _ in results:
        values = output.ravel()[: math.prod(info.shape)]
        shown = " ".join(str(value) for value in values[:SHOWN_VALUES].tolist())
        more = " ..." if values.size > SHOWN_VALUES else ""
        parts.append(f"First values of {one_line(info.name)}\n  {shown}{more}")
    return "\n\n".join(parts)
