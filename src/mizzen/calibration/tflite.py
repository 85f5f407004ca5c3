"""TFLite: quantised by AI Edge Quantizer, without TensorFlow.

Ranges are ours: TensorFlow Lite Micro computes every tensor of every sample, in a process of its
own, and the quantiser is told what to make of it. Inputs and outputs become integers too.
Ref: AI Edge Quantizer 0.10, recipe.py (static_wi8_ai8, static_wi8_ai16).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.steps import read_network
from mizzen.calibration.ranges import Ranges
from mizzen.calibration.scheme import (
    Activations,
    Method,
    Scheme,
    already_quantised,
    no_such_node,
    not_installed,
)
from mizzen.calibration.seen import Sample, Seen
from mizzen.calibration.silence import silence
from mizzen.calibration.source import FloatOperator, Made
from mizzen.calibration.tflite_biases import with_room
from mizzen.calibration.tflite_record import ended, normal
from mizzen.diagnostics import Diagnostic, MizzenError, fail
from mizzen.flatbuffer import write
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.frontends.tflite import Model, Operator
from mizzen.report.words import short_name

if TYPE_CHECKING:
    from mizzen.analysis.evaluation.reference import Subject
    from mizzen.artifact.interface import TensorInfo
    from mizzen.report.precision import Precision

    Array = npt.NDArray[Any]

AT_ONCE = 32
"""Samples that are computed at once; all of their tensors are held."""

NEAR = 3
"""Names that may be meant, for one that there is not."""


class TfliteSource:
    """A TFLite network of one subgraph, ready to be quantised."""

    form = "TFLite"
    suffix = ".tflite"
    methods: tuple[Method, ...] = (Method.MINMAX, Method.PERCENTILE)

    def __init__(self, data: bytes, name: str, scheme: Scheme) -> None:
        """Read and prepare a network. E1xx for what is not one, E198 and E199."""
        self.name = name
        model = read_network(data, name)
        if len(model.subgraphs) != 1:
            raise fail(
                "E198",
                f"{name} must have one subgraph to be quantised, and has {len(model.subgraphs)}",
                help="quantise it where it is converted, with a representative data set",
            )
        if _computes_integers(model):
            raise already_quantised(name)
        for package in ("ai_edge_quantizer", "ai_edge_litert"):
            if find_spec(package) is None:
                raise not_installed(package.replace("_", "-"), "quantize")
        record = normal(model.record)
        if scheme.cuts:
            cuts = [_operator(model, each, "--cut") for each in scheme.cuts]
            record = ended(record, [operator.index for operator in cuts])
        kept = [_operator(model, each, "--keep-float") for each in scheme.keep_float]
        self._kept = [tensor.name for each in kept for tensor in model.main.present(each.outputs)]
        self._data = write(record, SCHEMA)
        self._model = read_network(self._data, name)
        self.said: tuple[str, ...] = ()

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What it takes."""
        from mizzen.artifact.interface import TensorInfo

        main = self._model.main
        return [
            TensorInfo(tensor.name, tensor.shape, np.dtype(tensor.dtype or np.float32), None)
            for tensor in main.present(main.inputs)
        ]

    def seen(self, samples: Iterable[Sample], told: Callable[[int], None]) -> Seen:
        """Infer the samples, and return what every tensor was."""
        main = self._model.main
        seen = Seen(tuple(tensor.name for tensor in main.present(main.inputs)))
        for number, (sample, tensors) in enumerate(self._tensors(samples), 1):
            seen.add(sample, tensors)
            told(number)
        return seen

    def quantised(self, samples: Sequence[Sample], scheme: Scheme, seen: Seen) -> Made:
        """Return the quantised file."""
        recipes: Any = import_module("ai_edge_quantizer.recipe")
        quantizers: Any = import_module("ai_edge_quantizer.quantizer")
        wide = scheme.activations is Activations.INT16
        recipe = recipes.static_wi8_ai16() if wide else recipes.static_wi8_ai8()
        chosen = self._ranges(samples, scheme.method or Method.MINMAX, seen)
        with silence():
            quantizer = _without_interpreter(quantizers.Quantizer)(bytearray(self._data), recipe)
            for name in self._kept:
                quantizer.update_quantization_recipe(
                    f"(^|;){re.escape(name)}(;|$)", "*", algorithm_key="no_quantize"
                )
            try:
                result = quantizer.quantize(
                    chosen, enable_progress_bar=False, enable_progress_report=False
                )
            except Exception as error:
                raise self._refused(error) from None
        data = bytes(result.quantized_model)
        roomy = with_room(read_network(data, self.name), self._model)
        data = data if roomy is None else write(roomy, SCHEMA)
        return Made(data, tuple(_floating(read_network(data, self.name))))

    def advice(self, made: Made, seen: Seen) -> Iterator[Diagnostic]:
        """Return where a tensor keeps few levels."""
        from mizzen.compiler.levels import few_levels

        yield from few_levels(read_network(made.data, self.name))

    def precision(self, made: Made, arrays: Sequence[Array]) -> Precision:
        """Hold the quantised network against this one, layer by layer."""
        from mizzen.analysis.comparison.precision import Data, measured
        from mizzen.analysis.comparison.precision_tflite import TfliteNetworks

        networks = TfliteNetworks(read_network(made.data, self.name), self._model)
        return measured(networks, self.name, self.name, Data(arrays))

    def networks(self, made: Made) -> tuple[Subject, Subject]:
        """Return the quantised network and this one, to be judged by labels."""
        from mizzen.artifact.loading import artifact_of

        return artifact_of(made.data, self.name), artifact_of(self._data, self.name)

    def _tensors(self, samples: Iterable[Sample]) -> Iterator[tuple[Sample, dict[str, Array]]]:
        """Return what every tensor that is computed is, for each sample."""
        from mizzen.analysis.comparison.tflm import MicroReference
        from mizzen.compiler.folding import computed_once

        reference = MicroReference(computed_once(self._model))
        tensors = self._model.main.tensors
        following = iter(samples)
        while part := list(islice(following, AT_ONCE)):
            (values,) = reference.infer([[np.stack(each) for each in zip(*part, strict=True)]], [])
            computed = {
                tensors[index].name: value
                for index, value in values.items()
                if tensors[index].data is None
            }
            for place, sample in enumerate(part):
                yield sample, {name: value[place] for name, value in computed.items()}

    def _ranges(
        self, samples: Sequence[Sample], method: Method, seen: Seen
    ) -> dict[str, dict[str, Array]]:
        """Return the range of every tensor, as the quantiser takes them."""
        ranges = Ranges(seen)
        if method is Method.PERCENTILE:
            for _, tensors in self._tensors(samples):
                ranges.add(tensors)
        ranks = {tensor.name: len(tensor.shape) for tensor in self._model.main.tensors}
        return {
            name: {
                "min": np.full((1,) * ranks[name], low, np.float32),
                "max": np.full((1,) * ranks[name], high, np.float32),
            }
            for name, (low, high) in ranges.chosen().items()
        }

    def _refused(self, error: Exception) -> MizzenError:
        said = " ".join(str(error).split()) or type(error).__name__
        return fail(
            "E198",
            f"AI Edge Quantizer must be able to quantise {self.name}, and says: {said}",
            help="keep the operator that it names in floating point with --keep-float, or quantise "
            "the network where it is converted",
        )


def _without_interpreter(quantizer: Any) -> Any:
    """Return a quantiser that does not load the network into this process to see it once more.

    A damaged file may end the process that interprets it; ranges are there for every tensor.
    """

    class Told(quantizer):
        def _ensure_model_qsv_sufficient(self, calibration_result: object) -> None:
            """Take the ranges as they are."""

    return Told


def _computes_integers(model: Model) -> bool:
    from mizzen.frontends.tflite.reading import require_quantized

    try:
        require_quantized(model)
    except MizzenError:
        return False
    return True


def _operator(model: Model, name: str, option: str) -> Operator:
    """Return the operator of a number, or of the name of an output. E198 if there is none."""
    outputs = [
        (tensor.name, operator)
        for operator in model.main.operators
        for tensor in model.main.present(operator.outputs)
    ]
    by_name = {short_name(output): operator for output, operator in outputs} | dict(outputs)
    if name in by_name:
        return by_name[name]
    if name.isdecimal() and int(name) < len(model.main.operators):
        return model.main.operators[int(name)]
    raise no_such_node(option, name, difflib.get_close_matches(name, by_name, n=NEAR), model.name)


def _floating(model: Model) -> Iterator[FloatOperator]:
    """Return the operators of a network that take floating-point numbers."""
    main = model.main
    for operator in main.operators:
        taken = [tensor for tensor in main.present(operator.inputs) if tensor.data is None]
        if operator.kind != "QUANTIZE" and any(tensor.dtype == np.float32 for tensor in taken):
            outputs = main.present(operator.outputs)
            yield FloatOperator(operator.index, operator.kind, outputs[0].name if outputs else "")
