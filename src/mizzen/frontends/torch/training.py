"""Programs that were exported in training mode: dropout and batch norms that still train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.torch.program import origin_of

if TYPE_CHECKING:
    import torch

OF_MODEL = "call model.eval() first; for training with quantisation, use prepare_qat_pt2e"
OF_PROGRAM = (
    "call model.eval() before torch.export.export; give functional.dropout training=self.training"
)
OF_CONVERTED = (
    "call prepared.eval() (torchao's move_exported_model_to_eval) before convert_pt2e; give "
    "functional.dropout training=self.training"
)


def require_inference(graph_module: torch.nn.Module, name: str) -> None:
    """Raise E877 at the first operator of a program that computes otherwise in training."""
    parts: list[Any] = [part for part in graph_module.modules() if hasattr(part, "graph")]
    nodes: list[Any] = [node for part in parts for node in part.graph.nodes]
    for index, node in enumerate(nodes):
        if _trains(node):
            is_converted = any("quantize" in str(other.target) for other in nodes)
            meant = OF_CONVERTED if is_converted else OF_PROGRAM
            raise in_training(origin_of(node, name, index), meant)


def in_training(origin: Origin | None = None, meant: str = OF_MODEL) -> MizzenError:
    """Return E877, of a model whose training mode changes what is computed, first at an origin."""
    return fail(
        "E877",
        "the model must be in inference mode, and it is in training mode",
        origin=origin,
        help=meant,
    )


def _trains(node: Any) -> bool:
    """Whether a node drops values, or normalises with the statistics of this batch alone.

    A batch norm without statistics of its own does so in inference too.
    """
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return False
    given = {argument.name: argument.default_value for argument in schema.arguments}
    given |= dict(zip(given, node.args, strict=False)) | dict(node.kwargs)
    if not given.get("train", given.get("training", "dropout_p" in given)):
        return False
    for chance in ("p", "dropout", "dropout_p"):
        if chance in given:
            return given[chance] > 0
    return given.get("running_mean", given.get("lower")) is not None
