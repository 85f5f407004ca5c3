"""An audio front-end that is a network itself: features of one frame of samples at a time.

Its kernels keep state from frame to frame (noise estimates, filters), so a recording's frames go
through one session, in their order; the next recording starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.artifact.fitting import real, scale_of
from mizzen.artifact.interface import TensorInfo
from mizzen.cpu.device import DeviceKernels, device_kernels
from mizzen.diagnostics import fail, unreadable
from mizzen.frontends.tflite import Tensor, read

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.data.sound import Recording

    Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A front-end network.

    network  its TFLite file
    hop      samples from one frame to the next
    """

    name: str
    network: bytes
    hop: int

    def features(self, recording: Recording, info: TensorInfo) -> Array:
        """Return one inference of the input `info`, `[1, *shape]`: a row for each frame.

        A shorter recording is padded with zeros. The front-end's integers are the input's where
        both have one scale or it says none, else real numbers. Raises E255 for one that is longer
        than the input's frames, E70x where the kernels fail.
        """
        taken, given = interface(self.network, self.name)
        frame, values = int(np.prod(taken.shape)), int(np.prod(given.shape))
        elements = int(np.prod(info.shape))
        if elements % values:
            raise fail(
                "E255",
                f"the input {info.name} must take a whole number of frames of the front-end "
                f"{self.name}, which gives {values} values a frame, and takes {elements} values",
                help="choose the front-end that the network was trained with",
            )
        frames = elements // values
        most = frame + (frames - 1) * self.hop
        samples = recording.samples
        if len(samples) >= most + self.hop:
            raise fail(
                "E255",
                f"a recording must have at most {frames} frames of {frame} samples, {self.hop} "
                f"apart, which are {most:,} samples, not {len(samples):,}",
                help="cut it, or set --hop",
            )
        padded = np.pad(samples[:most], (0, max(0, most - len(samples))))
        session = _kernels(self.network).session()
        starts = range(0, frames * self.hop, self.hop)
        outputs = [
            session.run([padded[start : start + frame].reshape(1, *taken.shape)])[0]
            for start in starts
        ]
        joined = np.concatenate(outputs).reshape(1, *info.shape)
        alike = given.dtype == info.dtype and scale_of(given) == scale_of(info)
        return joined if alike else real(joined, given)


@cache
def _kernels(network: bytes) -> DeviceKernels:
    """Return a network's kernels, which every recording has a session of its own with."""
    return device_kernels(network)


@cache
def interface(network: bytes, name: str) -> tuple[TensorInfo, TensorInfo]:
    """Return a front-end's input and output. E255 unless it takes samples of 16 bits, alone."""
    main = read(network, name).main
    inputs, outputs = main.present(main.inputs), main.present(main.outputs)
    if len(inputs) != 1 or len(outputs) != 1 or inputs[0].dtype != np.int16:
        raise fail(
            "E255",
            f"the front-end {name} must take one tensor of 16-bit samples and give one of features",
        )
    return _info(inputs[0]), _info(outputs[0])


def _info(tensor: Tensor) -> TensorInfo:
    dtype = tensor.dtype or np.dtype(np.uint8)
    return TensorInfo(tensor.name, tensor.shape, dtype, tensor.quantization)


def front_end(path: Path, hop: int) -> FrontEnd:
    """Read a front-end's file. E110 if it cannot be read, E1xx if it is damaged."""
    try:
        network = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    interface(network, path.name)
    return FrontEnd(path.name, network, hop)
