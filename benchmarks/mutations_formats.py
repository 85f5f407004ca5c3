"""Which files are mutated, how, and what is done with them: one row a format.

A use is a command line, in which ``{x}`` is the mutated file, ``{c}`` the corpus and ``{o}`` a
folder for what is written; or a public function that the verbs read such files with, which costs
less. Most files go to the cheapest that reads all of them, some to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mizzen.flatbuffer.pte import SCHEMA as PTE
from mizzen.flatbuffer.tflite import SCHEMA as TFLITE
from mizzen.flatbuffer.tosa import SCHEMA as TOSA
from mutations_binary import mutate_bmp, mutate_elf, mutate_pixels, mutate_wav
from mutations_bytes import Mutate, raw, spliced
from mutations_containers import archived, mutate_array, mutate_mesh, mutate_png
from mutations_flatbuffer import by_schema
from mutations_text import mutate_cells, mutate_json, mutate_lines

SPLICES = 0.02
"""Part of all files that are the beginning of one and the end of another."""


@dataclass(frozen=True, slots=True)
class Use:
    """What is done with a file; so often, beside the others of its format."""

    weight: float
    words: tuple[str, ...] = ()
    function: Callable[[Path], object] | None = None

    @property
    def name(self) -> str:
        """What it is called in findings."""
        return " ".join(self.words) if self.function is None else self.function.__name__.strip("_")


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of files.

    share   of all mutated files, beside the others'
    bases   patterns of names in the corpus
    beside  file of the corpus that lies beside the mutated one, under its name with this ending
    """

    name: str
    share: float
    bases: tuple[str, ...]
    mutate: Mutate
    uses: tuple[Use, ...]
    beside: str = ""


def _words(weight: float, line: str) -> Use:
    return Use(weight, tuple(line.split()))


def _artifact_read(path: Path) -> object:
    from mizzen.artifact.loading import load

    artifact = load(path)
    return artifact.inputs, artifact.outputs


def _network_read(path: Path) -> object:
    from mizzen.frontends.tflite import macs, read

    model = read(path.read_bytes(), path.name)
    return [macs(model.main, operator) for operator in model.main.operators]


def _tosa_read(path: Path) -> object:
    from mizzen.frontends.tosa import read
    from mizzen.ops import verify

    graph = read(path.read_bytes(), path.name)
    return verify(graph)


def _board_read(path: Path) -> object:
    from mizzen.boards import find_board

    return find_board(str(path))


def _machine_read(path: Path) -> object:
    from mizzen.mesh.machine.reading import find_machine

    return find_machine(str(path))


def _sections_read(path: Path) -> object:
    from mizzen.targets.ethos_u.machine.system_config import resolve

    return resolve(
        "ethos-u55-128",
        config=str(path),
        system_config="Ethos_U55_High_End_Embedded",
        memory_mode="Shared_Sram",
    )


def _baseline_read(path: Path) -> object:
    from mizzen.report.versions import read_versions

    return read_versions(path)


def _image_of_firmware(path: Path) -> object:
    from mizzen.emulate.image import read_image, vector_table

    return vector_table(read_image(path.read_bytes()))


def _pte(data: bytes, chance: Random) -> bytes:
    """Change a program, or the segments behind it: payloads of delegates, constants."""
    if chance.random() < 0.3:
        return raw(data, chance)
    return _PTE(data, chance)


_PTE = by_schema(PTE)
_TFLITE = by_schema(TFLITE)
ARRAY_ARCHIVE = archived({".npy": mutate_array})
PROGRAM_ARCHIVE = archived({
    ".json": mutate_json, "arrays.npz": ARRAY_ARCHIVE, ".tflite": _TFLITE,
    ".pt2": archived({".json": mutate_json, "": raw}), "": raw,
})  # fmt: skip
EXPORTED = archived({".json": mutate_json, "": raw})

ARTIFACT_USES = (
    _words(40, "inspect {x}"),
    _words(22, "check --artifact {x} --quiet"),
    _words(4, "inspect {x} --listing --hazards --json"),
    _words(1, "inspect {x} --why"),
    _words(1.5, "report {x} -o {o}/page.html --csv {o}/csv --trace {o}/trace.json"),
    _words(1, "export {x} --to c --board corstone300 --output-dir {o}"),
    _words(0.5, "export {x} --to tflm --board corstone300 --output-dir {o}"),
    _words(0.5, "export {x} --to executorch --board corstone300 --output-dir {o}"),
    _words(1, "evaluate {x} --data {c}/dense.npz"),
)
DENSE = "{c}/dense-u55_vela.tflite"
CONFIGURED = (
    "--accelerator-config ethos-u55-128 --system-config Ethos_U55_High_End_Embedded "
    "--memory-mode Shared_Sram"
)
KWS, ANOMALY = "{c}/kws-u55_vela.tflite", "{c}/anomaly-u55_vela.tflite"

FORMATS = (
    Format(
        "network", 20, ("digits.tflite", "u55-?.tflite", "u85-?.tflite", "n78-?.tflite"), _TFLITE,
        (
            Use(80, function=_network_read),
            _words(14, "inspect {x}"),
            _words(6, "run {x} --input {c}/digits.npy --output-dir {o}"),
            _words(0.7, "check {x} --accelerator-config ethos-u55-128"),
            _words(0.5, "check {x} --accelerator-config ethos-n78-4tops-4ple"),
            _words(0.3, "check {x} --accelerator-config ethos-u85-256 --quiet"),
            _words(0.2, "compile {x} --accelerator-config ethos-u65-256 --output-dir {o}"),
            _words(0.3, "compile {x} --accelerator-config ethos-n78-4tops-4ple --output-dir {o}"),
            _words(0.2, "compile {x} --accelerator-config ethos-u85-256 --output-dir {o}"),
            _words(0.3, "compare {x} --artifact {c}/digits-u55_vela.tflite"),
            _words(0.3, "mesh map {x} --machine one -o {o}/x.mesh"),
            _words(0.2, "report {x} -o {o}/page.html"),
        ),
    ),
    Format(
        "artifact", 18, ("*_vela.tflite", "*_ethosn.tflite"), _TFLITE,
        (
            Use(60, function=_artifact_read), *ARTIFACT_USES,
            _words(8, "run {x} --input {c}/digits.npy --output-dir {o}"),
            _words(0.5, "compare {c}/digits.tflite --artifact {x}"),
        ),
    ),
    Format(
        "tosa", 8, ("*.tosa",), by_schema(TOSA),
        (
            Use(85, function=_tosa_read),
            _words(12, "run {x} --input {c}/digits.npy --output-dir {o}"),
            _words(0.5, "run {x} --output-dir {o}"),
            _words(0.8, "check {x} --accelerator-config ethos-u85-256"),
            _words(0.8, "check {x} --accelerator-config ethos-u55-128"),
            _words(0.4, "compile {x} --accelerator-config ethos-u85-256 --output-dir {o}"),
            _words(0.4, "compile {x} --accelerator-config ethos-u65-256 --output-dir {o}"),
            _words(0.1, "compare {x}"),
        ),
    ),
    Format(
        "pte", 8, ("*.pte",), _pte,
        (
            Use(60, function=_artifact_read), *ARTIFACT_USES,
            _words(10, "run {x} --input {c}/listen.npy --output-dir {o}"),
        ),
    ),
    Format(
        "raw", 7, ("raw-*.npz",), ARRAY_ARCHIVE,
        (
            Use(60, function=_artifact_read), *ARTIFACT_USES,
            _words(10, "run {x} --input {c}/digits.npy --output-dir {o}"),
        ),
    ),
    Format(
        "zip", 5, ("*.zip",), PROGRAM_ARCHIVE,
        (
            Use(60, function=_artifact_read), _words(5, "inspect {x}"),
            _words(5, "check --artifact {x}"),
            _words(5, "run {x} --input {c}/listen.npy --output-dir {o}"),
            _words(0.5, "report {x} -o {o}/page.html"),
            _words(0.3, "export {x} --to executorch --board corstone300 --output-dir {o}"),
        ),
    ),
    Format(
        "pt2", 0.6, ("*.pt2",), EXPORTED,
        (
            _words(6, "lower {x} -o {o}/x.tosa"),
            _words(3, "lower {x} --profile FP -o {o}/x.tosa"),
            _words(1, "check {x}"),
            _words(0.3, "compile {x} --output-dir {o}"),
        ),
    ),
    Format(
        "npy", 5, ("dense.npy", "digits.npy"), mutate_array,
        (
            _words(6, f"run {DENSE} --input {{x}} --output-dir {{o}}"),
            _words(3, f"evaluate {DENSE} --data {{x}} --labels {{c}}/labels.npy"),
            _words(1, "run {c}/digits-n78_ethosn.tflite --input {x} --output-dir {o}"),
        ),
    ),
    Format(
        "labels npy", 2, ("labels.npy",), mutate_array,
        (_words(1, f"evaluate {DENSE} --data {{c}}/dense.npy --labels {{x}}"),),
    ),
    Format(
        "npz", 4, ("dense.npz",), ARRAY_ARCHIVE,
        (
            _words(4, f"run {DENSE} --input {{x}} --output-dir {{o}}"),
            _words(5, f"evaluate {DENSE} --data {{x}}"),
            _words(1, f"evaluate {DENSE} --data {{x}} --labels labels --task values"),
        ),
    ),
    Format(
        "wav", 4, ("samples.wav", "kws.wav", "anomaly.wav"), mutate_wav,
        (
            _words(6, "run {c}/samples-u55_vela.tflite --input {x} --output-dir {o}"),
            _words(1, f"run {KWS} --input {{x}} --features mlperf-kws --output-dir {{o}}"),
            _words(1, f"run {ANOMALY} --input {{x}} --features mlperf-anomaly --output-dir {{o}}"),
        ),
    ),
    Format(
        "labels csv", 5, ("labels.csv", "named.csv", "y_labels.csv"), mutate_cells,
        (
            _words(4, f"evaluate {DENSE} --data {{c}}/samples --labels {{x}}"),
            _words(4, f"evaluate {DENSE} --data {{c}}/dense.npz --labels {{x}}"),
            _words(1, f"evaluate {DENSE} --data {{c}}/samples --labels {{x}} --classes a,b,c,d"),
            _words(1, f"evaluate {DENSE} --data {{c}}/samples --labels {{x}} --task values"),
            _words(1, f"evaluate {DENSE} --data {{c}}/samples --labels {{x}} --task anomaly"),
        ),
    ),
    Format(
        "classes", 0.5, ("classes.txt",), mutate_cells,
        (_words(1, f"evaluate {DENSE} --data {{c}}/dense.npz --classes {{x}}"),),
    ),
    Format(
        "png", 2, ("*.png",), mutate_png,
        (_words(1, "run {c}/image-u55_vela.tflite --input {x} --resize fit --output-dir {o}"),),
    ),
    Format(
        "jpg", 1, ("*.jpg",), raw,
        (_words(1, "run {c}/image-u55_vela.tflite --input {x} --resize crop --output-dir {o}"),),
    ),
    Format(
        "bmp", 1, ("*.bmp",), mutate_bmp,
        (_words(1, "run {c}/image-u55_vela.tflite --input {x} --resize stretch --output-dir {o}"),),
    ),
    Format(
        "ppm", 1, ("*.ppm",), mutate_pixels,
        (_words(1, "run {c}/image-u55_vela.tflite --input {x} --channels grey --output-dir {o}"),),
    ),
    Format(
        "sidecar", 3, ("dense-u55_vela.json", "digits-n78_ethosn.json"), mutate_json,
        (
            Use(20, function=_artifact_read), _words(8, "inspect {x_beside}"),
            _words(1, "report {x_beside} -o {o}/page.html"),
            _words(1, "check --artifact {x_beside} --board corstone300"),
        ),
        beside=".tflite",
    ),
    Format(
        "baseline", 2, ("baseline.json",), mutate_json,
        (
            Use(97, function=_baseline_read),
            _words(3, "compare {c}/dense.tflite --accelerator-config ethos-u55-128 --baseline {x}"),
        ),
    ),
    Format(
        "evaluation", 1.5, ("evaluation.json",), mutate_json,
        (_words(1, f"report {DENSE} --evaluation {{x}} -o {{o}}/page.html"),),
    ),
    Format(
        "mesh", 3, ("*.mesh",), mutate_mesh,
        (
            _words(20, "mesh check {x}"), _words(3, "mesh inspect {x}"),
            _words(2, "mesh run {x} --images 1 --output-dir {o}"),
            _words(1, "mesh report {x} -o {o}/page.html"),
        ),
    ),
    Format(
        "board", 5, ("board-*.toml",), mutate_lines,
        (
            Use(80, function=_board_read),
            _words(10, f"check --artifact {DENSE} --board {{x}}"),
            _words(2, f"export {DENSE} --to c --board {{x}} --output-dir {{o}}"),
            _words(1, f"export {DENSE} --to tflm --board {{x}} --output-dir {{o}}"),
            _words(0.2, "check {c}/dense.tflite --board {x}"),
            _words(1, "emulate {c}/transfer.elf --board {x} --timeout 0.3"),
        ),
    ),
    Format(
        "machine", 3, ("machine-*.toml",), mutate_lines,
        (
            Use(90, function=_machine_read),
            _words(5, "mesh map {c}/dense.tflite --machine {x} -o {o}/x.mesh"),
        ),
    ),
    Format(
        "vela.ini", 3, ("vela.ini",), mutate_lines,
        (
            Use(95, function=_sections_read),
            _words(1, f"check {{c}}/dense.tflite {CONFIGURED} --config {{x}}"),
        ),
    ),
    Format(
        "firmware", 3, ("*.elf",), mutate_elf,
        (Use(93, function=_image_of_firmware), _words(7, "emulate {x} --timeout 0.3")),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Input:
    """A mutated file, and what is to be done with it."""

    number: int
    format: Format
    base: Path
    data: bytes
    use: Use


@dataclass(frozen=True, slots=True)
class Corpus:
    """The formats that have sound files in a folder, and these files."""

    folder: Path
    bases: Mapping[Format, tuple[tuple[Path, bytes], ...]]

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats, always in one order."""
        return tuple(self.bases)


def corpus_in(folder: Path, formats: Sequence[Format] = FORMATS) -> Corpus:
    """Return the files of a folder that `mutations_corpus` has made."""
    bases = {
        row: tuple(
            (path, path.read_bytes())
            for pattern in row.bases
            for path in sorted(folder.glob(pattern))
        )
        for row in formats
    }
    return Corpus(folder, {row: found for row, found in bases.items() if found})


def input_of(corpus: Corpus, seed: int, number: int) -> Input:
    """Make a mutated file by its number: the same one every time, of the same corpus."""
    chance = Random(f"{seed} {number}")
    (row,) = chance.choices(corpus.formats, [each.share for each in corpus.formats])
    path, data = chance.choice(corpus.bases[row])
    if chance.random() < SPLICES:
        changed = spliced(data, chance.choice(corpus.bases[row])[1], chance)
    else:
        changed = row.mutate(data, chance)
    (use,) = chance.choices(row.uses, [each.weight for each in row.uses])
    return Input(number, row, path, changed, use)
