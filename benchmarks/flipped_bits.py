"""Single flipped bits in the files of artifacts: does `mizzen check --artifact` find each one?

Run ``python benchmarks/flipped_bits.py``. Artifacts are the example's digits and networks of the
models' folder for several NPUs, as `.tflite`, as ExecuTorch's `.pte`, and as an archive with a part
for ONNX Runtime. Bits are of every kind of place, as many of each: the head of the file, command
streams, constants, names of inputs and outputs, the manifest, the directory and the members of an
archive, all the rest. Each file is given to the verb itself. `--json` gives the figures:

`flipped`   files with one bit flipped
`found`     of these, the ones for which the verb's exit status is not 0
`told`      of these, the ones for which the manifest is the reason that the verb gives
`located`   of those in streams, constants and manifests, the share that is said to be there
`verify_ms` what verifying takes, of the largest file
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.verifying import doubts_of
from mizzen.cli.main import main as mizzen_main
from mizzen.report.manifest import find
from mizzen.targets.ethos_u.machine.program import Program

ROOT = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", ROOT.parent / "shared" / "models"))
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"

COUNT = 10_000
SEED = 20
HEAD_BYTES = 64
DIRECTORY = b"PK\1\2"
"""How an archive's directory begins."""

TOLD = {"E681", "E682", "E683", "E684"}
SAID = {"stream": "command stream", "constants": "constants", "manifest": "the manifest in"}
"""Words that say where it is."""

Spans = Mapping[str, Sequence[tuple[int, int]]]
"""Runs of bytes, first and one past the last, by the kind of place."""


@dataclass(frozen=True)
class Subject:
    """An artifact's file, and what lies where in it."""

    name: str
    data: bytes
    places: Spans


@dataclass(frozen=True)
class Flipped:
    """What became of a flipped bit."""

    subject: str
    place: str
    bit: int
    status: int
    codes: frozenset[str]
    said: str

    @property
    def is_located(self) -> bool:
        """Whether it is said to be where it is."""
        return SAID[self.place] in self.said


def subjects(smallest: bool) -> Iterator[Subject]:
    """Compile the artifacts."""
    yield from _of(DIGITS, "ethos-u55-128", executorch=True)
    if smallest:
        return
    for accelerator in ("ethos-u65-256", "ethos-u85-256"):
        yield from _of(DIGITS, accelerator, executorch=True)
    yield from _of(DIGITS, "ethos-n78-4tops-4ple", executorch=False)
    for name in ("micro_speech_quantized", "kws_micronet_m"):
        yield from _of(MODELS / f"{name}.tflite", "ethos-u55-256", executorch=False)
    for accelerator in ("ethos-u55-128", "ethos-u85-256"):
        yield subject(mizzen.compile(with_a_part_elsewhere(), accelerator))


def _of(path: Path, accelerator: str, *, executorch: bool) -> Iterator[Subject]:
    artifact = mizzen.compile(path, accelerator)
    yield subject(artifact)
    if executorch:
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, f"{path.stem}.pte")
            artifact.save(saved)
            yield subject(mizzen.load(saved))


def with_a_part_elsewhere() -> bytes:
    """Return an ONNX network whose sort is for ONNX Runtime."""
    from onnx import TensorProto, helper

    def rounded(name: str) -> list[Any]:
        integers = helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"])
        return [integers, helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"],
                                           [f"{name}_d"])]  # fmt: skip

    nodes = [
        *rounded("x"), helper.make_node("MatMul", ["x_d", "w_d"], ["r"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["w_d"]),
        *rounded("r"), helper.make_node("TopK", ["r_d", "k"], ["t", "places"]),
        *rounded("t"), helper.make_node("Relu", ["t_d"], ["u"]), *rounded("u"),
    ]  # fmt: skip
    nodes.insert(0, nodes.pop(3))
    weights = np.random.default_rng(SEED).integers(-127, 128, (16, 16)).astype(np.int8)
    graph = helper.make_graph(
        nodes, "parts",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("u_d", TensorProto.FLOAT, [1, 4])],
        [
            helper.make_tensor("s", TensorProto.FLOAT, [], [0.05]),
            helper.make_tensor("z", TensorProto.INT8, [], [0]),
            helper.make_tensor("k", TensorProto.INT64, [1], [4]),
            helper.make_tensor("w", TensorProto.INT8, [16, 16], weights.tobytes(), raw=True),
        ],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


def subject(artifact: Artifact) -> Subject:
    """Find what lies where in an artifact's file."""
    data = artifact.data
    places: dict[str, list[tuple[int, int]]] = {"head": [(0, HEAD_BYTES)]}
    found = find(data)
    assert found is not None, artifact.name
    places["manifest"] = [(found.start, found.end)]
    directory = data.find(DIRECTORY)
    if data.startswith(b"PK"):
        places["members"] = [(HEAD_BYTES, directory)]
        places["directory"] = [(directory, found.start)]
    else:
        places |= dict(_parts(artifact))
        known = sorted(span for spans in places.values() for span in spans)
        starts, ends = [0, *(end for _, end in known)], [*(at for at, _ in known), len(data)]
        places["rest"] = [(at, end) for at, end in zip(starts, ends, strict=True) if end - at > 0]
    name = f"{artifact.name} {artifact.accelerator}"
    return Subject(name, data, places)


def _parts(artifact: Artifact) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    streams = [
        step.program.words.tobytes()
        if isinstance(step.program, Program) else step.program.program.stream
        for step in steps
    ]  # fmt: skip
    constants = [
        part.tobytes()
        for step in steps if isinstance(step.program, Program)
        for part in step.program.constants.values()
    ]  # fmt: skip
    names = [info.name.encode() for info in (*artifact.inputs, *artifact.outputs)]
    for kind, parts in (("stream", streams), ("constants", constants), ("names", names)):
        spans = [(at, at + len(part)) for part in parts if (at := artifact.data.find(part)) >= 0]
        if spans:
            yield kind, sorted(dict.fromkeys(spans))


def bits(chosen: Sequence[Subject], count: int) -> Iterator[tuple[Subject, str, int]]:
    """Choose bits: of every kind of place in every file as many, all of `count` together."""
    rng = np.random.default_rng(SEED)
    kinds = [(each, place) for each in chosen for place in each.places]
    for index in range(count):
        each, place = kinds[index % len(kinds)]
        spans = each.places[place]
        at = int(rng.integers(sum(end - start for start, end in spans)))
        for start, end in spans:
            if at < end - start:
                yield each, place, 8 * (start + at) + int(rng.integers(8))
                break
            at -= end - start


def checked(file: Path, each: Subject, place: str, bit: int) -> Flipped:
    """Flip a bit, and give the file to the verb."""
    data = bytearray(each.data)
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)
    status, document = verb(file)
    said = document.get("failures") or [document.get("error") or {}]
    codes = frozenset(row.get("code", "") for row in said)
    text = " ".join(row.get("message", "") for row in said)
    return Flipped(each.name, place, bit, status, codes, text)


def verb(file: Path) -> tuple[int, dict[str, Any]]:
    """Run `mizzen check --artifact`; return its status, and what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        status = mizzen_main(["check", "--artifact", str(file), "--json", "--quiet"])
    return int(status), json.loads(printed.getvalue())


def flip(chosen: Sequence[Subject], count: int) -> Iterator[Flipped]:
    """Flip so many bits, one a file; the files as they are must pass."""
    with tempfile.TemporaryDirectory() as folder:
        for each in chosen:
            file = Path(folder, f"whole{Path(each.name.split()[0]).suffix}")
            file.write_bytes(each.data)
            status, _ = verb(file)
            if status:
                raise SystemExit(f"{each.name} must pass as it is, and ends with status {status}")
        for each, place, bit in bits(chosen, count):
            file = Path(folder, f"net{Path(each.name.split()[0]).suffix}")
            yield checked(file, each, place, bit)


def verify_ms(chosen: Sequence[Subject]) -> float:
    """Return the least time of five to verify the largest file."""
    data = max((each.data for each in chosen), key=len)
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        doubts_of(data, "largest")
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def figures(outcomes: Sequence[Flipped], chosen: Sequence[Subject]) -> dict[str, float]:
    """Count."""
    placed = [each for each in outcomes if each.place in SAID and each.codes <= {"E681", "E682"}]
    located = sum(each.is_located for each in placed)
    return {
        "flipped": len(outcomes),
        "found": sum(each.status != 0 for each in outcomes),
        "told": sum(bool(each.codes & TOLD) for each in outcomes),
        "located": located / max(len(placed), 1),
        "verify_ms": verify_ms(chosen),
    }


def by_place(outcomes: Sequence[Flipped]) -> Iterator[str]:
    """Say of each kind of place how many were found."""
    for place in sorted({each.place for each in outcomes}):
        here = [each for each in outcomes if each.place == place]
        found = sum(each.status != 0 for each in here)
        unread = sum(each.status == 2 for each in here)
        yield f"{place:10}  {found:,} of {len(here):,} found, {unread:,} in files not read any more"


def main() -> int:
    """Print what was found, or the figures; 1 where a bit was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT, help="bits to flip")
    parser.add_argument("--smallest", action="store_true", help="the example for one NPU alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = list(subjects(options.smallest))
    outcomes = list(flip(chosen, options.count))
    counted = figures(outcomes, chosen)
    missed = [f"{each.subject}, {each.place}, bit {each.bit}" for each in outcomes
              if not each.status]  # fmt: skip
    if options.json:
        print(json.dumps({"figures": counted, "missed": missed}))
    else:
        print("\n".join([*by_place(outcomes), *(f"missed: {each}" for each in missed)]))
        print(", ".join(f"{name} {value:g}" for name, value in counted.items()))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
