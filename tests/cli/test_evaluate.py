"""`mizzen evaluate` on the network of the digits example: what it prints, asks and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def artifact(here: Path, run: Run) -> Path:
    """The example compiled, with its images and labels in one archive."""
    run("compile", "digits.tflite", "--accelerator-config", "ethos-u55-128", "--prove", "off")
    np.savez(here / "set.npz", x=np.load("images.npy"), labels=np.load("labels.npy"))
    return here / "output" / "digits_vela.tflite"


def test_the_answer(artifact: Path, run: Run) -> None:
    status, out, err = run("evaluate", artifact, "--data", "set.npz")
    assert status == 0
    assert "  data         set.npz, 100 samples\n" in err
    head, metrics = out.split("\n", 1)
    assert head.startswith("100 samples in ")
    assert metrics.startswith("  top1      0.9900\n  top5      1.0000\n")
    assert "  2      .   1  12   .   .  .   .  .  .   .  92.3 %\n" in out
    assert out.endswith("\n\nMistakes\n  set.npz[48]\n")


def test_the_document(artifact: Path, run: Run) -> None:
    words = ("--data", "images.npy", "--labels", "labels.npy", "--json", "--metrics", "top1,top2")
    status, out, _ = run("evaluate", artifact, *words)
    document = json.loads(out)
    assert status == 0
    assert document["metrics"] == {"top1": 0.99, "top2": 1.0}
    assert document["samples"] == document["inferences"] == 100
    assert document["configuration"]["accelerator"] == "ethos-u55-128"
    assert sum(map(sum, document["confusion"]["counts"])) == 100
    assert document["holds"] is True


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--at-least", "top1=0.99", "--at-least", "0.5", "--at-most", "auc=1"), 0, ""),
        (("--at-least", "0.995"), 1, "error[E251]: top1 must be at least 0.995, and is 0.9900\n"),
        (("--at-most", "auc=0.5"), 1, "error[E251]: auc must be at most 0.5, and is 1.0000\n"),
        (("--at-least", "top3=0.5"), 2, "error[E250]: the metric top3 must have been computed; "),
        (("--at-least", "top1:0.9"), 2, "METRIC=VALUE or a number is needed, not 'top1:0.9'"),
        (("--output", "y"), 2, "error[E254]: the output that is judged must be one of "),
        (("--classes", "a,b"), 2, "error[E244]: there must be 10 classes, as the network has"),
        (("--labels", "truth"), 2, "error[E241]: truth must be a file of labels, or an array of "),
    ],
)
def test_conditions(
    artifact: Path, run: Run, words: tuple[str, ...], status: int, said: str
) -> None:
    found, _, err = run("evaluate", artifact, "--data", "set.npz", *words)
    assert said in err
    assert found == status


def folder_of_images(here: Path) -> Path:
    """The example's images as .npy files, in sub-folders named by label."""
    folder = here / "set"
    pairs = zip(np.load("images.npy"), np.load("labels.npy"), strict=True)
    for place, (image, label) in enumerate(pairs):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        np.save(folder / str(label) / f"{place:03}.npy", image)
    return folder


def test_a_folder_with_labels_as_names(artifact: Path, here: Path, run: Run) -> None:
    folder = folder_of_images(here)
    status, out, err = run("evaluate", artifact, "--data", folder, "--at-least", "0.99")
    assert status == 0
    # a long path is broken over two lines
    assert f"data{folder},100samples" in "".join(err.split())
    assert "  top1      0.9900\n" in out
    assert out.endswith("\n\nMistakes\n  2/048.npy\n")


def test_run_takes_the_same_folder(artifact: Path, here: Path, run: Run) -> None:
    folder = folder_of_images(here)
    order = np.argsort(np.load("labels.npy"), kind="stable")
    for name, given in (("one", folder), ("all", "images.npy")):
        status, out, _ = run("run", artifact, "--input", given, "--output-dir", name, "--json")
        assert status == 0
        assert json.loads(out)["inferences"] == 100
    one, whole = (np.load(here / name / "probabilities.npy") for name in ("one", "all"))
    assert np.array_equal(one, whole[order])


def test_run_takes_raw_pixels(artifact: Path, here: Path, run: Run) -> None:
    pixels = (np.load("images.npy")[:3].astype(np.int16) + 128).astype(np.uint8)
    Path("p.bin").write_bytes(pixels.tobytes())
    np.save("three.npy", np.load("images.npy")[:3])
    status, _, err = run(
        "run", artifact, "--input", "p.bin", "--raw-type", "uint8", "--output-dir", "raw"
    )
    assert status == 0
    assert "pixels 0 to 255 taken as int8 -128 to 127, which are " in err
    run("run", artifact, "--input", "three.npy", "--output-dir", "three")
    raw, three = (np.load(here / name / "probabilities.npy") for name in ("raw", "three"))
    assert np.array_equal(raw, three)


def test_a_reference_on_the_command_line(artifact: Path, run: Run) -> None:
    words = ("--data", "images.npy", "--reference", "digits.tflite", "--at-least", "same-class=1")
    status, out, _ = run("evaluate", artifact, *words)
    assert status == 0
    assert out.endswith(
        "\n\nReference digits.tflite\n"
        "  same-class  1.0000\n"
        "  equal       100 of 100 outputs\n"
        "  difference  0 at most, 0 in the mean\n"
    )


def test_processes_read_files_themselves(artifact: Path, here: Path, run: Run) -> None:
    folder = folder_of_images(here)
    documents: list[dict[str, object]] = []
    for jobs in (1, 2):
        status, out, _ = run("evaluate", artifact, "--data", folder, "--jobs", jobs, "--json")
        assert status == 0
        documents.append(json.loads(out))
        del documents[-1]["seconds"]
    assert documents[0] == documents[1]


def test_a_damaged_file_in_a_folder_is_named(artifact: Path, here: Path, run: Run) -> None:
    folder = folder_of_images(here)
    (folder / "2" / "048.npy").write_bytes(b"\x93NUMPY")
    for jobs in (1, 2):
        status, _, err = run("evaluate", artifact, "--data", folder, "--jobs", jobs, "--quiet")
        assert status == 2
        assert err.startswith(f"error[E203]: {folder}/2/048.npy must be a NumPy file: ")


def test_a_users_metric(
    artifact: Path, here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "mine.py").write_text(
        "def worst(outputs, labels):\n"
        "    return min((outputs.argmax(1) == labels)[labels == c].mean() for c in range(10))\n"
    )
    monkeypatch.syspath_prepend(here)
    words = ("--data", "set.npz", "--metrics", "mine:worst", "--at-least", "worst=0.95", "--quiet")
    status, _, err = run("evaluate", artifact, *words)
    assert status == 1
    assert err == "error[E251]: worst must be at least 0.95, and is 0.9231\n"
