"""Edges between operators of a model, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mizzen
from mizzen.report import CompileReport
from mizzen.report.compilation import as_dict, from_dict

from .ethos_u.networks import report_of


def edges(report: CompileReport) -> dict[int, tuple[int, ...]]:
    return {row.index: row.after for row in report.placements}


def test_a_residual_connection_has_two_edges(model_file: Callable[[str], Path]) -> None:
    """The first blocks of the network: conv, conv, conv, and the sum of the first and the last."""
    report = report_of(mizzen.compile(model_file("pretrainedResnet_quant.tflite"), prove="off"))
    found = edges(report)
    sums = [row for row in report.placements if row.kind == "ADD"]
    assert [row.kind for row in report.placements[:4]] == ["CONV_2D"] * 3 + ["ADD"]
    assert found[0] == ()
    assert found[3] == (0, 2)
    assert all(len(row.after) == 2 for row in sums)
    assert all(before < index for index, row in found.items() for before in row)


def test_edges_are_kept_beside_the_artifact(model_file: Callable[[str], Path]) -> None:
    report = report_of(mizzen.compile(model_file("kws_ref_model.tflite"), "ethos-u55-128"))
    assert edges(from_dict(as_dict(report))) == edges(report)
    assert edges(report)[5] == (4,)


def test_both_ways_of_compiling_a_network_give_its_edges(
    model_file: Callable[[str], Path],
) -> None:
    path = model_file("kws_ref_model.tflite")
    one = report_of(mizzen.compile(path, "ethos-u55-128", prove="off"))
    other = report_of(mizzen.compile(path, "ethos-n78-4tops-4ple", prove="off"))
    assert edges(one) == edges(other)
