"""Images as numbers: by hand, of files that Pillow writes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mizzen.artifact.fitting import fitted
from mizzen.artifact.interface import TensorInfo
from mizzen.data.forms import Channels, ImageForm, Layout, Resize
from mizzen.data.images import ImageReader, explained
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite.model import Quantization

pytest.importorskip("PIL", reason="Pillow, which reads images, is not installed")
Image: Any = import_module("PIL.Image")

UNIT = Quantization((1 / 255,), (-128,), 0)


def info(shape: tuple[int, ...], dtype: Any = np.int8) -> TensorInfo:
    return TensorInfo("x", shape, np.dtype(dtype), UNIT)


PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "p.png")
    return tmp_path / "p.png"


def test_pixels_are_the_inputs_integers(picture: Path) -> None:
    found = ImageReader(info((1, 2, 3, 3)), ImageForm())(picture)
    assert found.dtype == np.int8
    assert np.array_equal(found[0, 0].astype(int) + 128, PIXELS)
    whole = ImageReader(info((1, 2, 3, 3), np.uint8), ImageForm())(picture)
    assert np.array_equal(whole[0, 0], PIXELS)
    reals = ImageReader(info((1, 2, 3, 3), np.float32), ImageForm())(picture)
    assert np.array_equal(reals[0, 0], PIXELS.astype(np.float32) / 255)


def test_with_the_usual_scale_pixels_are_what_quantising_gives(picture: Path) -> None:
    """A scale of 1/255 and a zero point of -128: the integers are the pixels, less 128."""
    taken = ImageReader(info((1, 2, 3, 3)), ImageForm())(picture)
    reals = ImageReader(info((1, 2, 3, 3)), ImageForm(mean=(0.0,), std=(255.0,)))(picture)
    assert reals.dtype == np.float32
    assert np.array_equal(fitted(reals, info((1, 2, 3, 3)), lambda _: None), taken)


def test_channels_and_layouts(picture: Path) -> None:
    swapped = ImageReader(info((1, 2, 3, 3), np.uint8), ImageForm(channels=Channels.BGR))(picture)
    assert np.array_equal(swapped[0, 0], PIXELS[..., ::-1])
    first = ImageReader(info((1, 3, 2, 5), np.uint8), ImageForm(resize=Resize.STRETCH))(picture)
    assert first.shape == (1, 1, 3, 2, 5)
    said = ImageForm(layout=Layout.FIRST)
    planes = ImageReader(TensorInfo("x", (3, 2, 3), np.dtype(np.uint8), None), said)(picture)
    assert np.array_equal(planes[0], np.moveaxis(PIXELS, -1, 0))


def test_grey_is_the_luma_of_ITU_R_601(picture: Path) -> None:  # noqa: N802 that is its name
    grey = ImageReader(info((1, 2, 3, 1), np.uint8), ImageForm())(picture)
    luma = (PIXELS @ np.array([0.299, 0.587, 0.114])).reshape(1, 1, 2, 3, 1)
    assert np.abs(grey - luma).max() <= 1


def test_mean_and_deviation_of_each_channel(picture: Path) -> None:
    form = ImageForm(mean=(10.0, 20.0, 30.0), std=(2.0, 4.0, 8.0))
    found = ImageReader(info((1, 2, 3, 3)), form)(picture)
    expected = (PIXELS - np.array([10.0, 20.0, 30.0])) / np.array([2.0, 4.0, 8.0])
    assert np.array_equal(found[0, 0], expected.astype(np.float32))


def test_sizes(tmp_path: Path) -> None:
    """A left half of 200, a right half of 100: what is cropped, and where there is black."""
    wide = np.full((4, 16), 100, np.uint8)
    wide[:, :8] = 200
    Image.fromarray(wide).save(tmp_path / "w.png")
    four = info((1, 4, 4, 1), np.uint8)

    def read(resize: Resize) -> Any:
        return ImageReader(four, ImageForm(resize=resize))(tmp_path / "w.png")[0, 0, ..., 0]

    assert np.array_equal(read(Resize.CROP), np.array([[200, 200, 100, 100]] * 4))
    stretched = read(Resize.STRETCH)
    assert (stretched[:, 0] == 200).all()
    assert (stretched[:, 3] == 100).all()
    fit = read(Resize.FIT)
    assert (fit[0] == 0).all()
    assert (fit[1, 0], fit[1, 3]) == (200, 100)
    assert (fit[2:] == 0).all()


def test_what_is_said(picture: Path) -> None:
    assert explained(info((1, 2, 3, 3)), ImageForm()) == (
        "  x: pixels 0 to 255 taken as int8 -128 to 127, which are 0 to 1"
    )
    assert explained(info((1, 2, 3, 3)), ImageForm(mean=(1.0, 2.0, 3.0))) == (
        "  x: pixels taken as (pixel - [1, 2, 3]) / 1"
    )
    assert explained(info((1, 2, 3, 3), np.float32), ImageForm()).endswith("pixel / 255")


@pytest.mark.parametrize(
    ("shape", "form", "code", "said"),
    [
        ((1, 2, 4, 3), ImageForm(), "E246", r"must be of 4 x 2 pixels, .* not of 3 x 2"),
        ((1, 640), ImageForm(), "E246", r"must have the shape of an image, .* not \[1, 640\]"),
        ((1, 2, 3, 1), ImageForm(channels=Channels.RGB), "E246", "take RGB images, and has 1 "),
        ((1, 2, 3, 3), ImageForm(std=(0.229,)), "E257", "--std must be that of pixels from 0 to "),
        ((1, 2, 3, 3), ImageForm(mean=(1.0, 2.0)), "E257", "--mean must have 1 value or 3"),
    ],
)
def test_what_does_not_fit(
    picture: Path, shape: tuple[int, ...], form: ImageForm, code: str, said: str
) -> None:
    def read() -> None:
        explained(info(shape), form)
        ImageReader(info(shape), form)(picture)

    with pytest.raises(MizzenError, match=said) as found:
        read()
    assert found.value.diagnostic.code == code


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a"])
def test_damaged_images(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "d.png").write_bytes(data)
    with pytest.raises(MizzenError, match=r"d\.png must be an image that can be read") as found:
        ImageReader(info((1, 2, 3, 3)), ImageForm())(tmp_path / "d.png")
    assert found.value.diagnostic.code == "E245"


def test_an_image_that_ends_too_early(picture: Path) -> None:
    big = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(big).save(picture)
    picture.write_bytes(picture.read_bytes()[:4000])
    with pytest.raises(MizzenError, match="must be an image that can be read"):
        ImageReader(info((1, 64, 64, 3)), ImageForm())(picture)


def test_more_than_eight_bits_are_not_cut(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 3), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(MizzenError, match=r"its pixels are of mode I;16, not of 8 bits"):
        ImageReader(info((1, 2, 3, 1)), ImageForm())(tmp_path / "deep.png")


def test_an_image_of_another_kind_starts_no_program(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 2 2\n%%EOF\n")
    with pytest.raises(MizzenError, match="must be an image that can be read"):
        ImageReader(info((1, 2, 2, 3)), ImageForm())(tmp_path / "x.png")


def test_a_small_file_of_many_pixels(tmp_path: Path) -> None:
    (tmp_path / "x.ppm").write_bytes(b"P6 40000 2 255 abc")
    with pytest.raises(MizzenError, match="it has 40000 x 2 pixels"):
        ImageReader(info((1, 2, 2, 3)), ImageForm())(tmp_path / "x.ppm")


def test_a_strip_is_not_enlarged(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((20_000, 1), np.uint8)).save(tmp_path / "x.png")
    reader = ImageReader(info((1, 200, 200, 1)), ImageForm(Resize.CROP))
    with pytest.raises(MizzenError, match="nearer to 200 x 200 pixels than 1 x 20000"):
        reader(tmp_path / "x.png")
