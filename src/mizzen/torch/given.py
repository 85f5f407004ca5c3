"""What is given to `mizzen.torch.compile`: a model, an example of its arguments.

Whatever cannot be meant is refused here, before anything is done with it, in the words of what was
given and with what may have been meant.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mizzen.compiler.torch.call import Call, mapping_of
from mizzen.compiler.torch.exported import export, is_converted
from mizzen.diagnostics import MizzenError, fail
from mizzen.frontends.torch.program import origin_of
from mizzen.frontends.torch.training import in_training

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


def module_of(model: Any) -> torch.nn.Module:
    """Return a module of what is to be compiled: a module, an exported program, or a function.

    E230 for what is none of these, or is quantised already.
    """
    import torch

    if is_converted(model):
        raise fail(
            "E230",
            "a model must be in floating point, and a program that convert_pt2e made came",
            help="mizzen.torch.compile_converted(exported, accelerator) compiles it, exported "
            "again: torch.export.export(converted, example_inputs)",
        )

    if isinstance(model, torch.jit.ScriptModule):
        raise _no_model("a TorchScript module", "give the module that was scripted or traced")
    if isinstance(model, torch.nn.Module):
        return model
    if isinstance(model, torch.export.ExportedProgram):
        return _still(model.module(check_guards=False))
    if (entries := mapping_of(model)) is not None:
        raise _no_model(
            f"a dict of {len(entries)} entries",
            "make the model and load the weights into it: model.load_state_dict(...)",
        )
    if isinstance(model, str | bytes | Path):
        raise _no_model(
            f"a {type(model).__name__}",
            "mizzen.compile takes files; torch.export.load reads a .pt2 (a converted one after "
            "`import torchao.quantization.pt2e`), and weights of a .pt or .pth are for "
            "model.load_state_dict(torch.load(...))",
        )
    if isinstance(model, type):
        raise _no_model(f"the class {model.__name__}", f"make one of it: {model.__name__}()")
    if not callable(model):
        raise _no_model(f"a {type(model).__name__}", "give the model first, then its arguments")
    return _of_function(model)


def require_program(exported: object) -> None:
    """Refuse what is no exported program in place of a converted one. E230."""
    import torch

    if not isinstance(exported, torch.export.ExportedProgram):
        raise fail(
            "E230",
            "a converted program must be what torch.export.export gives, and one of type "
            f"{type(exported).__name__} came",
            help="torch.export.export(converted, example_inputs)"
            if is_converted(exported)
            else "mizzen.torch.compile(model, example_inputs, accelerator) quantises a model",
        )


def _no_model(came: str, meant: str) -> MizzenError:
    return fail(
        "E230",
        f"a model must be a torch.nn.Module, a function or an exported program, and {came} came",
        help=meant,
    )


def _of_function(function: Any) -> torch.nn.Module:
    """Return a module that calls a function, with the names of its parameters."""
    import torch

    class Function(torch.nn.Module):
        def forward(self, *arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

    try:
        own = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin that does not say
        return Function().eval()
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signed: Any = Function.forward
    with suppress(ValueError):  # where one of them is called self
        signed.__signature__ = own.replace(parameters=[this, *own.parameters.values()])
    return Function().eval()


def _still(module: torch.nn.Module) -> torch.nn.Module:
    """Say that an exported program, whose operators have their mode, is not being trained."""
    for part in module.modules():
        part.training = False
    return module


def call_of(module: torch.nn.Module, example: Any, named: Mapping[str, Any] | None) -> Call:
    """Return an example's arguments as the module takes them, arrays as tensors.

    A mapping whose keys are all parameters of the module has its arguments by name. E231 for
    arguments that the module does not take, or that are no tensors.
    """
    parameters = _parameters(module)
    keywords: dict[str, Any] = dict(named or {})
    by_name = mapping_of(example)
    if by_name and by_name.keys() <= set(parameters):
        keywords, example = {**by_name, **keywords}, ()
    positional: tuple[Any, ...] = tuple(example) if type(example) in (tuple, list) else (example,)
    _require_tensors(positional, keywords)
    try:
        bound = inspect.signature(module.forward).bind(*positional, **keywords)
    except TypeError as error:
        raise fail(
            "E231",
            f"the example must have the model's arguments, {_signature(module)}: {error}",
            help="give a tuple of the arguments of one call, or a dict that names them",
        ) from None
    ordered, others = _tensors((bound.args, bound.kwargs))
    return Call(ordered, others, parameters)


def _parameters(module: torch.nn.Module) -> tuple[str, ...]:
    given = inspect.signature(module.forward).parameters.values()
    return tuple(each.name for each in given if each.kind not in (each.VAR_POSITIONAL,
                                                                   each.VAR_KEYWORD))  # fmt: skip


def _signature(module: torch.nn.Module) -> str:
    return f"forward{inspect.signature(module.forward)}"


def _require_tensors(positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """E231 for an example of numbers alone, which are most likely a shape."""
    given = [*positional, *named.values()]
    if given and all(type(value) is int for value in given):
        shape = ", ".join(map(str, given))
        raise fail(
            "E231",
            f"the example must have tensors, and the numbers {shape} came",
            help=f"if that is a shape, give torch.randn({shape})",
        )


def _tensors(arguments: Any) -> Any:
    """Return arguments with tensors in place of arrays, each of its own.

    PyTorch would take one tensor that is given twice for one argument.
    """
    import torch
    from torch.utils._pytree import tree_map

    seen: set[int] = set()

    def tensor(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = torch.as_tensor(value)
            return value.to(torch.get_default_dtype()) if value.is_floating_point() else value
        if isinstance(value, torch.Tensor) and id(value) in seen:
            return value.clone()
        seen.add(id(value))
        return value

    return tree_map(tensor, arguments)


def program_of(module: torch.nn.Module, call: Call, name: str) -> ExportedProgram:
    """Export a module in inference mode, as it is called.

    E163 where PyTorch cannot export it, E231 for arguments that it cannot be called with, E877 for
    a module in training mode that computes otherwise in inference mode.
    """
    if not any(part.training for part in module.modules()):
        return _exported(module, call, name)
    try:
        still = copy.deepcopy(module).eval()
    except Exception:
        raise in_training() from None
    program = _exported(still, call, name)
    _require_same(program, module, call, name)
    return program


def _require_same(program: ExportedProgram, module: torch.nn.Module, call: Call, name: str) -> None:
    """E877 where a module in training mode is another program, at the first difference."""
    try:
        trained = export(module, call, name)
    except MizzenError:
        raise in_training() from None
    if trained.graph_module.code == program.graph_module.code:
        return
    pairs = zip(trained.graph.nodes, program.graph.nodes, strict=False)
    for index, (one, other) in enumerate(pairs):
        if (str(one.target), str(one.args)) != (str(other.target), str(other.args)):
            raise in_training(origin_of(one if one.op == "call_function" else other, name, index))
    raise in_training()


def _exported(module: torch.nn.Module, call: Call, name: str) -> ExportedProgram:
    try:
        return export(module, call, name)
    except MizzenError as error:
        said = _said_of_call(module, call)
        if said is None:
            raise
        shapes = ", ".join(_described(value) for value in call.leaves)
        raise fail(
            "E231",
            f"the model must take the example's arguments, {shapes}, and it says: {said}",
            origin=error.diagnostic.origin,
            help="give arguments of the shapes and types that it was trained with, as in one call "
            "of it",
        ) from error


def _said_of_call(module: torch.nn.Module, call: Call) -> str | None:
    """Return what a model says against being called; None if it can be, or if nobody can tell."""
    import torch

    try:
        own, arguments = copy.deepcopy((module, call))
    except Exception:
        return None
    try:
        with torch.no_grad():
            arguments.of(own)
    except Exception as error:
        return next(iter(str(error).strip().splitlines()), type(error).__name__)
    return None


def _described(value: Any) -> str:
    shape: Sequence[int] | None = getattr(value, "shape", None)
    if shape is None:
        return repr(value)
    return f"{str(value.dtype).removeprefix('torch.')}{list(shape)}"
