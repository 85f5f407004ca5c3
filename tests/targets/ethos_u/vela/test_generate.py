"""Generating code: the same as Vela's own command, and surviving whatever the compiler does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.targets.ethos_u.machine.commands import decode
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import memory_modes, resolve, usable_memory_modes
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED, read_files
from mizzen.targets.ethos_u.vela import generate as generating
from mizzen.targets.ethos_u.vela.generate import (
    Cause,
    Compiled,
    OperatorRefusal,
    Stopped,
    generate,
    options_text,
    refusals,
    system_text,
)

VELAS_FILE = Path(generating.core_path()).parent / "config_files" / BUNDLED
U55 = resolve("ethos-u55-128")
U85 = resolve("ethos-u85-256")
DAMAGED = b"\x10\x00\x00\x00TFL3" + b"\xff" * 64
MAP = (1, 8, 8, 8)


def network(kind: str, dtype: str, output: str, options: str | None = None) -> bytes:
    """One operator of two inputs, or of one."""
    net = NetworkBuilder()
    inputs = [net.tensor(f"in{i}", MAP, dtype, 0.05) for i in range(2 if kind == "ADD" else 1)]
    result = net.tensor("out", MAP, output, None if output == "bool" else 0.05)
    net.operator(kind, inputs, [result], None if options is None else (options, {}))
    return net.finish(inputs, [result])


def conv_and_relu() -> bytes:
    net = NetworkBuilder()
    x = net.tensor("x", MAP, "int8", 0.05)
    rng = np.random.default_rng(0)
    weights = net.constant("w", rng.integers(-127, 128, (8, 3, 3, 8), np.int8), 0.02)
    bias = net.constant("b", np.zeros(8, np.int32), 0.001)
    middle = net.tensor("middle", MAP, "int8", 0.1)
    y = net.tensor("y", MAP, "int8", 0.1)
    options = ("Conv2DOptions", {"stride_w": 1, "stride_h": 1})
    net.operator("CONV_2D", [x, weights, bias], [middle], options)
    net.operator("TANH", [middle], [y])
    return net.finish([x], [y])


ADD = network("ADD", "int8", "int8", "AddOptions")
ENDLESS = network("LOGISTIC", "int8", "int16")
"""Vela 5.2.0 runs forever on it for U85."""
CRASHING = network("ADD", "int64", "int64", "AddOptions")
"""Vela 5.2.0 crashes on it for U85."""


@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_accelerator_compiles(name: str) -> None:
    found = generate(conv_and_relu(), resolve(name))
    assert isinstance(found, Compiled)
    assert found.version == "5.2.0"
    assert found.network[4:8] == b"TFL3"
    assert found.estimate.cycles >= found.estimate.npu_cycles > 0
    assert found.estimate.figures["macCount"] >= 8 * 8 * 8 * 72
    assert {work.operator for work in found.work} == {0, 1}
    assert not any(work.on_cpu for work in found.work)
    word = ACCELERATORS[name].config_word.to_bytes(4, "little")
    assert b"COP1\x01\x00\x10\x00" + word in found.network


def test_commands_are_operations_of_the_stream(model_file: Callable[[str], Path]) -> None:
    """Byte offsets are from the stream's start; each is an operation, of operators in order."""
    from mizzen.artifact.ethos_u import npu_operator
    from mizzen.artifact.steps import is_npu
    from mizzen.artifact.steps import read_network as read
    from mizzen.targets.ethos_u.machine import driver
    from mizzen.targets.ethos_u.machine.commands import Arch

    found = generate(model_file("audio_preprocessor_int8.tflite").read_bytes(), U55)
    assert isinstance(found, Compiled)
    artifact = read(found.network, "artifact")
    npu = [npu_operator(artifact, row) for row in artifact.main.operators if is_npu(row)]
    assert {command.stream for command in found.commands} == set(range(len(npu)))
    for stream, part in enumerate(npu):
        commands = decode(driver.parse(part.payload).words, Arch.U55)
        names = {row.offset_words * 4: row.command.name for row in commands}
        rows = [command for command in found.commands if command.stream == stream]
        assert {names[row.offset_bytes] for row in rows} <= {"OP_ELEMENTWISE", "OP_POOL"}
    assert [row.operator for row in found.commands] == [15, 16, 18]


def vela_text(accelerator: str, system: str, mode: str) -> str:
    """What Vela's own command gives to the core: the whole file, and names."""

    row = ACCELERATORS[accelerator]
    head = f"[architecture]\nmacs={row.macs_per_core}\ncores={row.cores}\n[vela]\n"
    names = f"system_config_name={system}\nmemory_mode_name={mode}\n"
    return head + names + VELAS_FILE.read_text()


@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u65-512", "ethos-u85-1024"])
def test_the_spelled_out_system_gives_what_velas_own_text_gives(
    accelerator: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from ethosu import regor

    data = conv_and_relu()
    sections = read_files([BUNDLED])
    family = accelerator.split("-")[1].upper()
    systems = [n for n in sections.names() if n.startswith(f"System_Config.Ethos_{family}")]
    for system in [name.removeprefix("System_Config.") for name in systems]:
        first = resolve(accelerator, system_config=system, memory_mode="Shared_Sram")
        for mode in usable_memory_modes(sections, first.accelerator, first.system):
            ours = resolve(accelerator, system_config=system, memory_mode=mode)
            texts = (system_text(ours), vela_text(accelerator, system, mode))
            results = [
                regor.compile(f"Ethos{family}", data, "TFLITE", text, options=options_text(ours))
                for text in texts
            ]
            assert bytes(results[0].model) == bytes(results[1].model)
            cycles = [result.perf_report.totalCycles for result in results]
            assert cycles[0] == cycles[1], (system, mode)
    capfd.readouterr()
    assert len(memory_modes(sections)) == 6


def test_the_command_line_of_vela_gives_the_same_file(tmp_path: Path) -> None:
    source = tmp_path / "net.tflite"
    source.write_bytes(conv_and_relu())
    command = [sys.executable, "-m", "ethosu.vela", str(source), "--optimise", "Size"]
    choice = ["--accelerator-config", "ethos-u65-256", "--config", "Arm/vela.ini"]
    names = ["--system-config", "Ethos_U65_Mid_End", "--memory-mode", "Dedicated_Sram_256KB"]
    subprocess.run(
        [*command, *choice, *names, "--output-dir", str(tmp_path)], check=True, capture_output=True
    )
    ours = resolve(
        "ethos-u65-256",
        system_config="Ethos_U65_Mid_End",
        memory_mode="Dedicated_Sram_256KB",
        optimise="Size",
    )
    found = generate(source.read_bytes(), ours)
    assert isinstance(found, Compiled)
    assert (tmp_path / "net_vela.tflite").read_bytes() == found.network


def test_an_own_name_does_not_double_the_bus(tmp_path: Path) -> None:
    """The core would take a U55 for one with ports of 16 bytes if its system's name were kept."""

    own = tmp_path / "own.ini"
    text = VELAS_FILE.read_text()
    own.write_text(text.replace("Ethos_U55_High_End_Embedded", "Board"))
    board = resolve("ethos-u55-128", config=own, system_config="Board", memory_mode="Shared_Sram")
    found = generate(conv_and_relu(), board)
    bundled = generate(conv_and_relu(), U55)
    assert isinstance(found, Compiled)
    assert isinstance(bundled, Compiled)
    assert found.estimate == bundled.estimate


def test_operators_to_ignore_stay_on_the_cpu() -> None:
    found = generate(conv_and_relu(), resolve("ethos-u55-128", ignore_ops=["TANH", "ARG_MAX"]))
    assert isinstance(found, Compiled)
    assert [(work.operator, work.on_cpu) for work in found.work] == [(0, False), (1, True)]


def test_a_refusal_is_told_in_velas_words(model_file: Callable[[str], Path]) -> None:
    found = generate(model_file("audio_preprocessor_int8.tflite").read_bytes(), U55)
    assert isinstance(found, Compiled)
    by_output = {row.output: row for row in found.refusals}
    assert by_output["TruncateDiv"] == OperatorRefusal(
        "DIV", "TruncateDiv", "Unsupported opType", ""
    )
    assert by_output["concat"] == OperatorRefusal(
        "CONCATENATION",
        "concat",
        "Unsupported dataType Int32",
        "32-bit feature-maps are not supported.",
    )


def test_reasons_of_several_lines_and_what_is_printed_around_them() -> None:
    log = (
        "Tensor 'x' has a dynamic signature in axis 0. Setting shape axis 0 to 1.\n"
        "TfLiteReader: Built-in options type 'EqualOptions' is not yet implemented.\n"
        "\n"
        "Warning (supported operators) operator: CONV_2D, ofm: 'it's/a:0'\n"
        "Reason: Unsupported kernel stride: 4, 4\n"
        "Rules:\n  - one\n  - two\n"
        "\n"
        "Warning (supported operators) operator: CAST, ofm: ''\n"
        "Reason: Unsupported opType\n"
    )
    assert refusals(log) == (
        OperatorRefusal(
            "CONV_2D",
            "it's/a:0",
            "Unsupported kernel stride: 4, 4",
            "Rules:\n  - one\n  - two",
        ),
        OperatorRefusal("CAST", "", "Unsupported opType", ""),
    )
    assert refusals("") == ()


def stopped(data: bytes, configuration: object = U55, seconds: float = 60.0) -> Stopped:
    found = generate(data, configuration, time_limit_seconds=seconds)  # pyright: ignore[reportArgumentType] - one of the two above
    assert isinstance(found, Stopped)
    return found


def test_a_crash_is_survived() -> None:
    found = stopped(DAMAGED)
    assert found.cause is Cause.CRASHED
    assert found.message == (
        "the compiler must give a network, and crashed (signal SIGSEGV); the last it said: "
        "Failed to load TfLite model. Buffer contents inconsistent with generated schema."
    )
    assert found.diagnostic.code == "E302"


def test_a_crash_in_the_middle_is_survived() -> None:
    found = stopped(CRASHING, U85)
    assert found.cause is Cause.CRASHED
    assert "Could not find a valid OFM microblock for Add with 64-bit input." in found.said


def test_an_endless_run_is_ended() -> None:
    start = time.monotonic()
    found = stopped(ENDLESS, U85, 1.0)
    assert time.monotonic() - start < 10
    assert found.cause is Cause.TIME_LIMIT
    assert found.diagnostic.render() == (
        "error[E303]: the compiler must end within 1 s, and did not\n"
        "  help leave out `--generator`: Mizzen's own code needs no Vela"
    )


def test_a_limit_of_milliseconds_ends_anything() -> None:
    assert stopped(ADD, U55, 0.001).cause is Cause.TIME_LIMIT


def test_a_network_that_is_no_network_is_refused() -> None:
    found = stopped(b"")
    assert found.cause in {Cause.REFUSED, Cause.CRASHED}


def test_a_network_against_the_schema_is_refused() -> None:
    found = stopped(network("HARD_SWISH", "int16", "int16", "HardSwishOptions"))
    assert found.cause is Cause.REFUSED
    assert found.diagnostic.code == "E301"
    assert "HARD_SWISH 'out' Does not have valid TFLite Semantics" in found.said


def test_an_operator_without_a_place_is_told_apart() -> None:
    found = stopped(network("CAST", "int8", "bool", "CastOptions"))
    assert found.cause is Cause.CANNOT_FALL_BACK
    assert found.message == (
        "the compiler must place every operator, and cannot: "
        "Non-passthrough operation (And) could not run on NPU"
    )


def test_too_little_memory_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The worker's own limit, made small."""
    script = tmp_path / "worker.py"
    text = generating.SCRIPT.read_text()
    assert "8 << 30" in text
    script.write_text(text.replace("8 << 30", "72 << 20"))
    monkeypatch.setattr(generating, "SCRIPT", script)
    large = NetworkBuilder()
    x = large.tensor("x", (1, 4096), "int8", 0.05)
    weights = large.constant("w", np.ones((8192, 4096), np.int8), 0.02)
    y = large.tensor("y", (1, 8192), "int8", 0.05)
    large.operator("FULLY_CONNECTED", [x, weights, -1], [y], ("FullyConnectedOptions", {}))
    found = stopped(large.finish([x], [y]))
    assert found.cause in {Cause.MEMORY_LIMIT, Cause.CRASHED}


def test_a_worker_that_answers_nonsense_is_survived(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "worker.py"
    monkeypatch.setattr(generating, "SCRIPT", script)
    for text in ("", "print('hello')", "import sys; sys.exit(7)", "import os; os.abort()"):
        script.write_text(text)
        assert stopped(ADD).cause is Cause.CRASHED


def test_no_process_and_no_file_is_left_behind() -> None:
    def children() -> str:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text()

    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = files(), children()
    stopped(DAMAGED)
    stopped(ENDLESS, U85, 0.3)
    assert isinstance(generate(ADD, U55), Compiled)
    assert (files(), children()) == before


def test_a_long_compilation_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generating, "WAITING_AFTER_SECONDS", 0.2)
    monkeypatch.setattr(generating, "WAITING_EVERY_SECONDS", 0.1)
    told: list[float] = []
    generate(ENDLESS, U85, time_limit_seconds=0.75, on_progress=told.append)
    assert len(told) >= 3
    assert told == sorted(told)
    assert 0.2 <= told[0] < 0.75
    told.clear()
    assert isinstance(generate(ADD, U55, on_progress=told.append), Compiled)


def test_several_at_once() -> None:
    networks = [ADD, DAMAGED, conv_and_relu()]
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(generate, networks, [U55, U55, U85]))
    assert [type(result).__name__ for result in results] == ["Compiled", "Stopped", "Compiled"]


def test_a_compiler_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    from mizzen.diagnostics import MizzenError

    monkeypatch.setattr(generating, "CORE", "ethosu_of_another_name.regor")
    with pytest.raises(MizzenError) as caught:
        generate(ADD, U55)
    assert str(caught.value) == (
        "error[E300]: Arm's compiler must be installed: the package ethos-u-vela was not found\n"
        "  help install Mizzen with its extra vela: pip install '.[vela]' in its checkout"
    )


def test_a_round_trip_is_quick(slowness: float) -> None:
    """A quarter of a second would be a fourth of what a compilation may take."""
    taken: list[float] = []
    for _ in range(5):
        start = os.times()
        generate(ADD, U55)
        # All that this process and the worker spent; the fifth is the clock, which others use too.
        taken.append(sum(os.times()[:4]) - sum(start[:4]))
    assert min(taken) < 0.25 * slowness


def test_options_are_velas() -> None:
    text = options_text(replace(U55, ignore_ops=("ADD", "ARG_MAX")))
    assert "ignore_ops=ADD,ARGMAX\n" in text
    assert "optimize=Performance\n" in text
    assert f"arena_size_limit={1 << 32}\n" in text
