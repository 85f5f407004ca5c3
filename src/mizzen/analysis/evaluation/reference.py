"""What an artifact is compared with: the network that it was made of, on other arithmetic.

A TFLite network runs on TFLite Micro's kernels, or, compiled, on the simulated NPU again; a PyTorch
program runs in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.fitting import fitted, real, scale_of, unsaid
from mizzen.artifact.interface import TensorInfo
from mizzen.artifact.loading import load
from mizzen.diagnostics import Diagnostic, MizzenError, fail, unreadable

if TYPE_CHECKING:
    import numpy.typing as npt

    from mizzen.report import CompileReport

    Array = npt.NDArray[Any]

PYTORCH, ONNX = ".pt2", ".onnx"


class Network(Protocol):
    """What infers a batch: an artifact, or a reference."""

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What it takes."""
        ...

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What it gives."""
        ...

    def run(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Infer `[N, *shape]` arrays, one for each input."""
        ...


def open_reference(path: str | Path) -> Network:
    """Read a reference: a TFLite or ONNX network or an artifact, or a program of torch.export's.

    Raises E110 and E1xx for files that are none, E230 for what is no path.
    """
    _require_path(path)
    source = Path(path)
    if source.suffix.lower() not in (PYTORCH, ONNX):
        return load(source)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise unreadable(source, error) from None
    if source.suffix.lower() == ONNX:
        return _onnx(data, source)
    return PytorchProgram(data, source.name)


def _require_path(path: object) -> None:
    if not isinstance(path, str | PathLike):
        raise fail(
            "E230",
            f"the reference must be a file's path, and one of type {type(path).__name__} came",
            help="a PyTorch model is written with torch.export.save(torch.export.export(model, "
            "inputs), 'model.pt2')",
        )


def _onnx(data: bytes, source: Path) -> Network:
    """Read an ONNX network as it is compiled, so that ONNX Runtime opens no file that it names."""
    from mizzen.artifact.onnx_network import OnnxNetwork
    from mizzen.frontends.onnx.reading import read
    from mizzen.frontends.onnx.writing import submodel

    model = read(data, source.name, source.parent)
    return OnnxNetwork(submodel(model, model.nodes, model.inputs, model.outputs), source.name)


def doubts_of(network: Network | None) -> tuple[Diagnostic, ...]:
    """Return why the file of a reference may not be what was compiled."""
    return network.doubts if isinstance(network, Artifact) else ()


class Subject(Network, Protocol):
    """A network that is judged: an artifact, or one that is for no accelerator."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def accelerator(self) -> str | None:
        """What it was compiled for."""
        ...

    @property
    def report(self) -> CompileReport | None:
        """What became of it in compilation."""
        ...


class PytorchProgram:
    """An exported program, executed by PyTorch; pickled, it is read again from its bytes."""

    accelerator = None
    report = None

    def __init__(self, data: bytes, name: str) -> None:
        """Read a program. E160 to E169 for a file that is not one, E165 without PyTorch."""
        self.data = data
        self.name = name
        self.inputs, self.outputs = self._interface

    def run(self, *arrays: Array) -> tuple[Array, ...]:
        """Infer `[N, *shape]`, one inference after the other."""
        torch: Any = import_module("torch")
        collected: list[list[Array]] = [[] for _ in self.outputs]
        with torch.no_grad():
            for inputs in zip(*arrays, strict=True):
                results = self._module(*(torch.from_numpy(np.array(array)) for array in inputs))
                several = results if len(collected) > 1 else (_first(results),)
                for place, result in zip(collected, several, strict=True):
                    place.append(result.detach().numpy())
        return tuple(np.stack(each) for each in collected)

    def __reduce__(self) -> tuple[type[PytorchProgram], tuple[bytes, str]]:
        """Return a constructor and its arguments that make it again in another process."""
        return PytorchProgram, (self.data, self.name)

    @cached_property
    def _program(self) -> Any:
        from mizzen.frontends.torch.exported_file import read_exported
        from mizzen.quantize import register_operators, require_torch

        require_torch()
        register_operators()
        return read_exported(self.data, self.name)

    @cached_property
    def _module(self) -> Any:
        return self._program.module()

    @property
    def _interface(self) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
        program = self._program
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        signature = program.graph_signature
        taken, given = (
            tuple(_info(str(name), values[name]) for name in names)
            for names in (signature.user_inputs, signature.user_outputs)
        )
        return taken, given


def _first(results: Any) -> Any:
    several = isinstance(results, (tuple, list))
    return cast("Sequence[Any]", results)[0] if several else results


def _info(name: str, value: Any) -> TensorInfo:
    dtype = np.dtype(str(value.dtype).removeprefix("torch."))
    return TensorInfo(name, tuple(int(extent) for extent in value.shape), dtype, None)


def referred(network: Network, artifact: Network, given: Sequence[Array]) -> list[Array]:
    """Return the arrays for a reference where the artifact is given `[N, *shape]`.

    These are the artifact's own numbers where both have one form, else real ones; an image has its
    channels where the reference has them. E254 for a reference of other inputs.
    """
    if len(network.inputs) != len(artifact.inputs):
        raise fail(
            "E254",
            f"the reference must take {len(artifact.inputs)} inputs, as the artifact does, not "
            f"{len(network.inputs)}",
        )
    return [
        _for(info, own, array)
        for array, own, info in zip(given, artifact.inputs, network.inputs, strict=True)
    ]


def _for(info: TensorInfo, own: TensorInfo, array: Array) -> Array:
    alike = own.dtype == info.dtype and scale_of(own) == scale_of(info)
    if not (alike and array.dtype == own.dtype):
        array = fitted(real(_own(array, own), own), info, unsaid)
    if _without_ones(own.shape) == _without_ones(info.shape):
        return array.reshape(-1, *info.shape)
    channels_last = array.reshape(-1, *own.shape[-3:])
    if len(own.shape) >= 3 and _moved(own.shape[-3:]) == _without_batch(info.shape):
        return np.moveaxis(channels_last, -1, 1).reshape(-1, *info.shape)
    raise _other_shape(own, info)


def _own(array: Array, own: TensorInfo) -> Array:
    """Return integers of another type as the input takes them; real numbers are not rounded."""
    return array if array.dtype.kind == "f" else fitted(array, own, unsaid)


def _moved(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[2], shape[0], shape[1])


def _without_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[1:] if len(shape) == 4 and shape[0] == 1 else shape


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)


def _other_shape(own: TensorInfo, info: TensorInfo) -> MizzenError:
    return fail(
        "E254",
        f"the reference's input {info.name} must have the shape {list(own.shape)}, as the "
        f"artifact's has, or that with its channels first, not {list(info.shape)}",
        help="compare with the network that the artifact was made of",
    )
