"""Which backend an accelerator has, and what it makes of what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import mizzen
from mizzen.compiler.backend import backend_for, backends, resolve_target
from mizzen.compiler.options import CompileOptions
from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Graph, TensorType
from mizzen.package.tosa import write
from mizzen.targets.ethos_u.vela.generate import options_text
from mizzen.targets.families import families


def refusal(asked: CompileOptions) -> str:
    with pytest.raises(MizzenError) as caught:
        resolve_target(asked)
    return caught.value.diagnostic.render()


def test_every_accelerator_has_the_backend_that_names_it() -> None:
    for family, backend in zip(families(), backends(), strict=True):
        assert family.accelerator_names
        for name in family.accelerator_names:
            assert backend_for(name.upper()) is backend
            assert resolve_target(CompileOptions(name)).accelerator == name


def test_families_have_codes_of_their_own() -> None:
    assert [family.name for family in families()] == ["Ethos-U", "Ethos-N"]
    assert [family.code for family in families()] == ["ethos-u", "ethos-n"]


def test_an_unknown_accelerator_is_answered_with_the_nearest_of_all() -> None:
    text = refusal(CompileOptions("ethos-n78-4tops-3ple"))
    assert text.startswith("error[E210]: the accelerator must be ethos-u55-32, ethos-u55-64, ")
    assert text.endswith(
        "or ethos-n78-8tops-2ple, not 'ethos-n78-4tops-3ple'\n"
        "  help did you mean ethos-n78-4tops-4ple?"
    )


def test_an_ethos_u_has_options_of_its_own_and_no_others() -> None:
    asked = CompileOptions("ethos-u55-128", target_options={"disable_winograd": "true"})
    assert refusal(asked) == (
        "error[E225]: Ethos-U has the options disable, rewrite, tensor-allocator, generator, "
        "search of its own, and disable_winograd came\n"
        "  help leave it out"
    )


def test_an_ethos_u_can_be_told_to_leave_features_that_there_are() -> None:
    asked = CompileOptions("ethos-u55-128", target_options={"disable": "cascading+bufering"})
    assert refusal(asked) == (
        "error[E260]: what the compiler must leave must be of chaining, fwd, cascading, buffering, "
        "ifm-reuse, not 'bufering'\n"
        "  help several are written as disable=cascading+buffering"
    )
    asked = CompileOptions(
        "ethos-u55-128",
        target_options={"disable": "buffering+cascading", "tensor-allocator": "greedy"},
    )
    target = resolve_target(asked)
    text = options_text(target.configuration)
    assert "disable_feature=Cascading|WeightBuffering\n" in text
    assert "tensor_allocator=Greedy\n" in text
    shown = {
        row.label: row.value for row in target.backend.configuration_lines(target.configuration)
    }
    assert shown["disable"] == "buffering+cascading"


@pytest.mark.parametrize("name", ["config", "system_config", "memory_mode"])
def test_an_ethos_n_needs_no_description_of_its_system(name: str) -> None:
    option = name.replace("_", "-")
    assert refusal(replace(CompileOptions("ethos-n78-1tops-2ple"), **{name: "x"})) == (
        f"error[E226]: --{option} must be left out for Ethos-N, whose system needs no "
        "description, and is 'x'\n"
        "  help --arena-cache-size sets another SRAM, --target-option the compiler's options"
    )


def test_the_configuration_in_force_of_an_ethos_n() -> None:
    asked = CompileOptions(
        "ethos-n78-4tops-4ple",
        arena_cache_size=16 * 48 * 1024,
        target_options={"disable_winograd": "true"},
    )
    chosen = resolve_target(asked)
    assert chosen.configuration.as_dict() == {
        "accelerator": "ethos-n78-4tops-4ple",
        "sram_bytes": 16 * 48 * 1024,
        "options": {"disable_winograd": "true"},
    }
    shown = [
        (row.label, row.value, row.is_default)
        for row in chosen.backend.configuration_lines(chosen.configuration)
    ]
    assert shown == [
        ("accelerator", "ethos-n78-4tops-4ple", False),
        ("SRAM", 16 * 48 * 1024, False),
        ("options", "disable_winograd=true", False),
    ]


def test_an_sram_that_an_ethos_n_cannot_have() -> None:
    text = refusal(CompileOptions("ethos-n78-4tops-4ple", arena_cache_size=1000))
    assert text.startswith("error[E911]: User configured SRAM size is smaller than the minimum")


@pytest.mark.parametrize("verb", [mizzen.compile, mizzen.check])
def test_a_tosa_file_has_not_what_an_ethos_n_needs(verb: Callable[..., object]) -> None:
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType((1, 4, 4, 8), DType.INT8), "image")])
    with pytest.raises(MizzenError) as caught:
        verb(write(graph), "ethos-n78-4tops-4ple")
    assert caught.value.diagnostic.render() == (
        "error[E995]: Ethos-N needs the scales of all tensors, and model.tosa has none: TOSA keeps "
        "only what rescaling makes of them\n"
        "  rule TOSA 1.0, RESCALE\n"
        "  help compile the .tflite or the .pt2 that the file was made of"
    )
