"""Files of other forms: what each is said to be, and what to do."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import mizzen
from mizzen.diagnostics import MizzenError

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(64)


def archive(*members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for member in members:
            written.writestr(member, b"x")
    return file.getvalue()


FILES = {
    "net.keras": (archive("metadata.json", "config.json", "model.weights.h5"), "a Keras model"),
    "named.keras": (b"not an archive", "a Keras model"),
    "net.h5": (HDF5, "a Keras model or its weights, in HDF5"),
    "net.pt": (archive("net/data.pkl", "net/data/0"), "a PyTorch checkpoint"),
    "net.pth": (b"\x80\x02\x8a\nl\xfc", "a PyTorch checkpoint"),
    "script.pt": (archive("net/data.pkl", "net/constants.pkl"), "a TorchScript program"),
    "net.gguf": (b"GGUF\x03\0\0\0" + bytes(16), "a GGUF file of a language model"),
    "net.safetensors": (b"\x10\0\0\0\0\0\0\0" + b'{"a":{}}' + bytes(8), "a file of weights alone"),
    "net.mlmodel": (b"\x08\x04\x12\x20" + bytes(8), "a Core ML model"),
    "net.pb": (b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder", "a frozen TensorFlow graph"),
    "net.ort": (b"\x18\0\0\0ORTM" + bytes(16), "a model of ONNX Runtime's own form"),
}


def error_of(path: Path) -> MizzenError:
    with pytest.raises(MizzenError) as caught:
        mizzen.compile(path)
    return caught.value


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_is(name: str, tmp_path: Path) -> None:
    data, what = FILES[name]
    (tmp_path / name).write_bytes(data)
    diagnostic = error_of(tmp_path / name).diagnostic
    assert diagnostic.code == "E101"
    assert diagnostic.message.startswith(
        f"{name} must be a quantised network as .tflite, .onnx, .pt2 or .tosa, and is {what}"
    )
    assert diagnostic.help


def test_commands_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "net.h5").write_bytes(HDF5)
    help = error_of(tmp_path / "net.h5").diagnostic.help
    assert help is not None
    assert "tf.keras.models.load_model('net.h5')" in help


def test_a_file_of_no_known_form(tmp_path: Path) -> None:
    (tmp_path / "net.bin").write_bytes(b"\1\2\3\4\5\6\7\x08\x09")
    assert str(error_of(tmp_path / "net.bin")) == (
        "error[E101]: net.bin must be a TFLite file: bytes 4..8 must be 'TFL3', not "
        "'\\x05\\x06\\x07\\x08'\n"
        "  help give a quantised .tflite, .onnx, .pt2 or .tosa file, or an artifact that `mizzen "
        "compile` wrote"
    )


def test_folders(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    assert error_of(saved).diagnostic.code == "E110"
    (saved / "saved_model.pb").write_bytes(b"")
    diagnostic = error_of(saved).diagnostic
    assert diagnostic.code == "E101"
    assert diagnostic.message.endswith("is the folder of a TensorFlow SavedModel")
    assert diagnostic.help is not None
    assert "from_saved_model(" in diagnostic.help
    package = tmp_path / "net.mlpackage"
    package.mkdir()
    assert "is a Core ML model" in error_of(package).diagnostic.message
