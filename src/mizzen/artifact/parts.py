"""The parts of an artifact's file that have digests of their own, whatever the container.

Nothing is decoded or planned: what counts is the bytes that the NPU and its driver are given, so a
part can be told from another even in a file that nothing can run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from mizzen.archives import ArchiveError, unpacked
from mizzen.artifact.archive import PLAN, damaged, npu_networks
from mizzen.artifact.forms import TFLITE, own_ending
from mizzen.artifact.steps import family_of, is_npu, read_network
from mizzen.flatbuffer.memory_plan import ALLOCATION
from mizzen.flatbuffer.pte import ENDING as PTE
from mizzen.frontends.tflite import Model, Tensor
from mizzen.package.executorch import reading, vela_bin
from mizzen.package.executorch.writing import DELEGATE
from mizzen.report.manifest import NpuCode


@dataclass(frozen=True, slots=True)
class Parts:
    """Digests of the parts of a file.

    npu            of each NPU operator, in the file's order
    tables_sha256  of what says where inputs and outputs are, what they are called and stand for
    """

    npu: tuple[NpuCode, ...]
    tables_sha256: str


def parts_of(data: bytes, name: str) -> Parts:
    """Return the digests of the parts of a file. Raises as the readers of its format."""
    match own_ending(data):
        case end if end == TFLITE:
            return _of_network(read_network(data, name))
        case end if end == PTE:
            return _of_executorch(data, name)
        case _:
            return _of_archive(data, name)


def _of_network(model: Model) -> Parts:
    plan = model.metadata.get(ALLOCATION)
    tables = [
        [[_row(subgraph.tensors[index]) for index in side]
         for side in (subgraph.inputs, subgraph.outputs)]
        for subgraph in model.subgraphs
    ]  # fmt: skip
    signatures = [
        [each.name, each.subgraph, each.inputs, each.outputs] for each in model.signatures
    ]
    places = "" if plan is None else plan.tobytes().hex()
    return Parts(tuple(_codes(model)), _digest_of([tables, signatures, places]))


def _row(tensor: Tensor) -> list[Any]:
    quantization = tensor.quantization
    numbers = [] if quantization is None else [
        [scale.hex() for scale in map(float, quantization.scale)],
        list(map(int, quantization.zero_point)),
    ]  # fmt: skip
    return [tensor.name, list(tensor.shape), tensor.type.name, numbers]


def _codes(model: Model) -> Iterator[NpuCode]:
    for subgraph in model.subgraphs:
        for operator in filter(is_npu, subgraph.operators):
            held = (tensor.data for tensor in subgraph.present(operator.inputs))
            constants = [each.tobytes() for each in held if each is not None]
            yield _code(*family_of(operator).divided(constants))


def _of_archive(data: bytes, name: str) -> Parts:
    try:
        members = unpacked(data)
        networks, plan = npu_networks(members), members[PLAN]
    except (ArchiveError, KeyError, ValueError) as error:
        raise damaged(name, str(error)) from None
    codes = [code for each in networks for code in _codes(read_network(each, name))]
    return Parts(tuple(codes), sha256(plan).hexdigest())


def _of_executorch(data: bytes, name: str) -> Parts:
    program = reading.read(data, name)
    held = [
        vela_bin.read(delegate.payload, f"{name}: delegate {place}", program.named)
        for place, delegate in enumerate(program.delegates)
        if delegate.backend == DELEGATE
    ]
    edge = [
        [_value_row(program.values[index]) for index in side]
        for side in (program.inputs, program.outputs)
    ]
    places = [
        [[list(each.shape), each.element_bytes, each.offset_bytes, each.region] for each in side]
        for content in held
        for side in (content.inputs, content.outputs)
    ]
    scratch = [content.scratch_bytes for content in held]
    codes = tuple(_code(content.commands, content.weights) for content in held)
    return Parts(codes, _digest_of([edge, places, scratch]))


def _value_row(value: reading.Value) -> list[Any]:
    if not isinstance(value, reading.PteTensor):
        return [repr(value)]
    place = None if value.place is None else value.place.offset_bytes
    return [value.name, list(value.shape), value.dtype.str, list(value.dim_order), place]


def _code(stream: bytes, constants: bytes) -> NpuCode:
    return NpuCode(sha256(stream).hexdigest(), sha256(constants).hexdigest())


def _digest_of(table: list[Any]) -> str:
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()
