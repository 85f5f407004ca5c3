"""Run networks on LiteRT's reference kernels, in a worker process that networks may end.

LiteRT is TensorFlow Lite itself. It has kernels of operators and types for which TensorFlow Lite
Micro has none, and rounds some others otherwise: so it is asked only where that has nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.tflm import TIME_LIMIT_SECONDS, fitting
from mizzen.cpu.tflm_process import receive, send
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.tflite import Model, Operator, Tensor, read
from mizzen.platforms.limits import TIMED_OUT, how_ended
from mizzen.platforms.pipes import unless_gone
from mizzen.workers import Worker, Workers

Array = npt.NDArray[Any]

SCRIPT = Path(__file__).with_name("litert_process.py")
NAME = "LiteRT"
INSTALL = "pip install '.[litert]' in the folder of Mizzen's sources"

ROUNDED_ONCE = "LiteRT rounds it once, where TensorFlow Lite Micro and the NPU round twice"

NOT_LIKE_TFLM: dict[tuple[str, str], str] = {
    **{("FULLY_CONNECTED", type_): ROUNDED_ONCE for type_ in ("INT8", "UINT8", "INT16")},
    ("SUM", "INT8"): "LiteRT's kernel of it is broken",
    ("SUM", "INT16"): "LiteRT's kernel of it is broken",
}
"""Operators and types of their first input for which LiteRT's kernels say nothing."""

TAKEN_FOR: dict[tuple[str, str], tuple[float, int]] = {("SOFTMAX", "UINT8"): (1 / 256, 0)}
"""The scale and zero point that LiteRT's kernel takes an output's for, whatever they are."""

SCALE_ERROR = 1e-3
"""Within which the kernels call two scales equal, as a part of them."""


def is_installed() -> bool:
    """Whether there are the kernels."""
    return find_spec("ai_edge_litert") is not None


def objection(model: Model, operator: Operator) -> str | None:
    """Return why LiteRT's numbers for an operator are not to be taken, if that is known."""
    main = model.main
    taken = main.present(operator.inputs)
    if not taken or not operator.outputs:
        return None
    key = operator.kind, taken[0].type.name
    if key in TAKEN_FOR and not _has(main.tensors[operator.outputs[0]], *TAKEN_FOR[key]):
        return "LiteRT's kernel does not read its output's scale and zero point"
    return NOT_LIKE_TFLM.get(key)


def _has(tensor: Tensor, scale: float, zero_point: int) -> bool:
    quantization = tensor.quantization
    if quantization is None or not quantization.scale:
        return False
    near = abs(quantization.scale[0] - scale) <= SCALE_ERROR * scale
    return near and quantization.zero_point[0] == zero_point


class LiteRtKernels:
    """A network on LiteRT's reference kernels.

    `operators` says where each of its operators comes from, in order, for diagnostics.

    Raises, when it is run: E721 without the package ai-edge-litert, E722 for what the kernels
    refuse or what ends or outlasts their process, E707 if they give other tensors than the
    network says.
    """

    def __init__(self, network: bytes, operators: Sequence[Origin] = ()) -> None:
        self._network = np.frombuffer(network, np.uint8)
        self._origin = operators[0] if len(operators) == 1 else None
        main = read(network, "").main
        self._outputs = main.present(main.outputs)

    def run(self, inputs: Sequence[Array], batch: int | None = None) -> list[Array]:
        """Infer once per element of `inputs`, arrays `[batch, *shape]`; outputs have that form.

        Every inference starts from the initial state. `batch` is needed if there are no inputs.
        """
        count = len(inputs[0]) if batch is None else batch
        with _workers.lock:
            outputs = self._asked(inputs, count)
        return fitting(outputs, self._outputs, count, NAME, self._origin)

    def _asked(self, inputs: Sequence[Array], count: int) -> list[Array]:
        requests, answers = _the_worker().pipes
        try:
            with unless_gone():  # it has ended, and that is found next
                request = {"batch": count, "seconds": TIME_LIMIT_SECONDS}
                send(requests, request, [self._network, *inputs])
            answer, outputs = receive(answers)
        except Exception:  # it has ended, or its answer makes no sense
            raise self._refused(_how_ended(_workers.pop().end())) from None
        except BaseException:  # an interrupt leaves half a message behind
            _workers.end()
            raise
        if answer:
            raise self._refused(" ".join(str(answer["text"]).split()))
        return outputs

    def _refused(self, said: str) -> MizzenError:
        return fail(
            "E722",
            f"LiteRT's kernels must take the network, but say: {said}",
            origin=self._origin,
        )


def _how_ended(status: int) -> str:
    if status == TIMED_OUT:
        return f"an inference takes longer than {TIME_LIMIT_SECONDS} seconds"
    return f"the process ended with {how_ended(status)}"


_workers = Workers[Worker]()
"""The one worker, which starts with the first network and again after one that ended it."""


def _the_worker() -> Worker:
    for worker in [each for each in _workers if each.process.poll() is not None]:
        _workers.remove(worker)
        worker.end()
    if not _workers:
        _require_package()
        _workers.append(Worker(SCRIPT))
    return _workers[0]


def _require_package() -> None:
    if not is_installed():
        raise fail(
            "E721",
            "operators that TensorFlow Lite Micro has no kernel for must have LiteRT's, but the "
            "package ai-edge-litert is not installed",
            help=INSTALL,
        )
