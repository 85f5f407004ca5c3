"""Files of other forms that users bring: what each is, and how to come to one that is read here.

Most are told by their first bytes, some by their names alone. Nothing is unpacked or executed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from mizzen.diagnostics import MizzenError, fail

LOOKED_AT = 4096
"""Bytes of an archive in which the names of its first members are."""

TO_TFLITE = (
    "converter.optimizations = [tf.lite.Optimize.DEFAULT]; converter.representative_dataset = "
    "samples; converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]; "
    "open('model.tflite', 'wb').write(converter.convert())"
)
FROM_KERAS = (
    "in Python: converter = tf.lite.TFLiteConverter.from_keras_model("
    f"tf.keras.models.load_model({{name!r}})); {TO_TFLITE}"
)
FROM_SAVED = (
    f"in Python: converter = tf.lite.TFLiteConverter.from_saved_model({{name!r}}); {TO_TFLITE}"
)
FROM_TORCH = (
    "in Python, with the module that the weights are for: mizzen.torch.compile(model, (example,), "
    "calibration=samples), or torch.onnx.export(model, (example,), 'model.onnx', dynamo=True) and "
    "mizzen quantize model.onnx --data DATA -o model_int8.onnx"
)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A form of files that are not read here.

    what  it is, in words
    help  how to come to a form that is read; `{name!r}` is the file's name
    """

    what: str
    recognises: Callable[[bytes, str], bool]
    help: str


def _named(*endings: str) -> Callable[[bytes, str], bool]:
    return lambda data, name: name.lower().endswith(endings)


def _begins(*starts: bytes) -> Callable[[bytes, str], bool]:
    return lambda data, name: data.startswith(starts)


def _archive_of(*members: bytes) -> Callable[[bytes, str], bool]:
    return lambda data, name: (
        data.startswith(b"PK") and any(member in data[:LOOKED_AT] for member in members)
    )


def _is_safetensors(data: bytes, name: str) -> bool:
    return name.lower().endswith(".safetensors") or data[8:10] == b'{"'


FORMS = (
    Foreign("a Keras model", _archive_of(b"model.weights.h5"), FROM_KERAS),
    Foreign("a Keras model", _named(".keras"), FROM_KERAS),
    Foreign("a Keras model or its weights, in HDF5", _begins(b"\x89HDF\r\n"), FROM_KERAS),
    Foreign(
        "a TorchScript program",
        _archive_of(b"/constants.pkl"),
        "TorchScript has no quantised form that is read here: load the Python module instead; "
        + FROM_TORCH,
    ),
    Foreign("a PyTorch checkpoint, which has weights and no network",
            _archive_of(b"/data.pkl"), FROM_TORCH),
    Foreign("a PyTorch checkpoint, which has weights and no network",
            _named(".pt", ".pth", ".ckpt"), FROM_TORCH),
    Foreign("a GGUF file of a language model", _begins(b"GGUF"),
            "language models of this form are for llama.cpp, and too large for an Ethos NPU"),
    Foreign("a file of weights alone (safetensors)", _is_safetensors, FROM_TORCH),
    Foreign(
        "a Core ML model",
        _named(".mlmodel", ".mlpackage"),
        "go back to what it was converted from: a Keras model to .tflite, a PyTorch module to "
        ".pt2 or .onnx",
    ),
    Foreign("a model of ONNX Runtime's own form", lambda data, name: data[4:8] == b"ORTM",
            "give the .onnx that it was made from"),
    Foreign(
        "a frozen TensorFlow graph",
        _named(".pb", ".pbtxt"),
        "in Python: converter = tf.compat.v1.lite.TFLiteConverter.from_frozen_graph({name!r}, "
        f"['input'], ['output']); {TO_TFLITE}",
    ),
)  # fmt: skip


def is_exported(name: str) -> bool:
    """Whether a file's name is one of a program of torch.export."""
    return name.lower().endswith(".pt2")


def is_foreign(data: bytes, name: str) -> bool:
    """Whether a file is of a known form that is not read here."""
    return any(form.recognises(data, name) for form in FORMS)


def not_read(data: bytes, name: str, otherwise: str) -> MizzenError:
    """Return the error of a file that no front-end reads: E101.

    otherwise  what is wrong where the form is not known either
    """
    if name.lower().endswith(".onnx"):
        return fail(
            "E101",
            f"{name} must be compiled to be executed or looked into, and is an ONNX network",
            help=f"mizzen compile {name}",
        )
    if is_exported(name):
        return fail(
            "E101",
            f"{name} must be compiled to be executed or looked into, and is a program of "
            "torch.export",
            help=f"mizzen compile {name}",
        )
    for form in FORMS:
        if form.recognises(data, name):
            return fail(
                "E101",
                f"{name} must be a quantised network as .tflite, .onnx, .pt2 or .tosa, and is "
                f"{form.what}",
                help=form.help.format(name=name),
            )
    return fail(
        "E101",
        otherwise,
        help="give a quantised .tflite, .onnx, .pt2 or .tosa file, or an artifact that `mizzen "
        "compile` wrote",
    )


def not_read_folder(name: str, members: frozenset[str]) -> MizzenError:
    """Return the error of a folder in place of a file: E101 for a known one, else E110."""
    if "saved_model.pb" in members:
        return fail(
            "E101",
            f"{name} must be a file, and is the folder of a TensorFlow SavedModel",
            help=FROM_SAVED.format(name=name),
        )
    if PurePath(name).suffix == ".mlpackage":
        (form,) = (form for form in FORMS if form.recognises(b"", ".mlmodel"))
        return fail("E101", f"{name} must be a file, and is {form.what}", help=form.help)
    return fail("E110", f"{name} must be a file that can be read: Is a directory")
