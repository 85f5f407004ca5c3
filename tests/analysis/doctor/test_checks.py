"""What does not fit is named before any log; what could not be checked is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mizzen
from mizzen.analysis.doctor import Cause, Certainty, Diagnosis, Firmware, doctor
from mizzen.analysis.doctor.stream import npu_steps
from mizzen.artifact.artifact import Artifact
from mizzen.boards import find_board
from mizzen.diagnostics import MizzenError

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"
ARENA_BYTES = 2000


@pytest.fixture(scope="module")
def digits() -> Artifact:
    return mizzen.compile(DIGITS, "ethos-u55-64", memory_mode="Shared_Sram", prove="off")


@pytest.fixture(scope="module")
def cop2(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """Vela's artifact in the form that older drivers do not take."""
    folder = tmp_path_factory.mktemp("cop2")
    words = [sys.executable, "-m", "ethosu.vela", DIGITS, "--output-dir", folder]
    options = ["--accelerator-config", "ethos-u55-64", "--cop-format", "COP2"]
    subprocess.run([*map(str, words), *options], check=True, capture_output=True)
    return mizzen.load(folder / "digits_vela.tflite")


def causes(diagnosis: Diagnosis) -> list[Cause]:
    return [verdict.cause for verdict in diagnosis.verdicts]


def said(diagnosis: Diagnosis, name: str) -> tuple[bool | None, str]:
    check = next(check for check in diagnosis.checks if check.name == name)
    return check.holds, check.said


def test_all_that_holds_holds(digits: Artifact) -> None:
    told = Firmware(
        accelerator="ethos-u55-64",
        arena_bytes=ARENA_BYTES,
        model_address=0x7000_0000,
        arena_address=0x3100_0000,
        operators=("ethos-u",),
    )
    diagnosis = doctor(digits, find_board("corstone300"), told)
    assert [check.name for check in diagnosis.checks if check.holds is not True] == []
    assert not diagnosis.failures


def test_what_was_not_checked_is_said(digits: Artifact) -> None:
    diagnosis = doctor(digits)
    unchecked = [check.name for check in diagnosis.checks if check.holds is None]
    assert unchecked == [
        "NPU",
        "memories",
        "arena",
        "address of the model",
        "address of the arena",
        "operators",
    ]
    assert not diagnosis.failures


@pytest.mark.parametrize(
    ("told", "cause", "advice"),
    [
        (
            Firmware(accelerator="ethos-u55-128"),
            Cause.OTHER_SIZE,
            "compile the network with --accelerator-config ethos-u55-128",
        ),
        (
            Firmware(accelerator="ethos-u85-256"),
            Cause.OTHER_PRODUCT,
            "compile the network with --accelerator-config ethos-u85-256",
        ),
        (
            Firmware(arena_bytes=ARENA_BYTES - 1),
            Cause.ARENA_TOO_SMALL,
            "make it 2000 bytes: 1 more",
        ),
        (
            Firmware(model_address=0x7000_0004),
            Cause.MODEL_UNALIGNED,
            "align the array that holds the model: __attribute__((aligned(16)))",
        ),
        (
            Firmware(operators=("SOFTMAX",)),
            Cause.OPERATOR_MISSING,
            "call AddEthosU() of a MicroMutableOpResolver that has room for them",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    told: Firmware, cause: Cause, advice: str, digits: Artifact
) -> None:
    diagnosis = doctor(digits, find_board("corstone300"), told)
    assert causes(diagnosis) == [cause]
    assert diagnosis.verdicts[0].advice == advice


@pytest.mark.parametrize("address", [0x3000_0000, 0x9999_0000])
def test_memory_that_the_npu_does_not_reach(address: int, digits: Artifact) -> None:
    told = Firmware(arena_address=address)
    diagnosis = doctor(digits, find_board("corstone300"), told)
    assert causes(diagnosis) == [Cause.UNREACHED]


def test_a_board_with_another_npu(digits: Artifact) -> None:
    assert Cause.OTHER_PRODUCT in causes(doctor(digits, find_board("corstone320")))
    large = mizzen.compile(DIGITS, "ethos-u55-256", prove="off")
    assert Cause.OTHER_SIZE in causes(doctor(large, find_board("himax_we2")))


def test_a_log_and_a_check_that_agree_come_first(digits: Artifact) -> None:
    log = "NPU config mismatch. npu.macs_per_cc=7, optimizer.macs_per_cc=6"
    diagnosis = doctor(digits, firmware=Firmware(accelerator="ethos-u55-128"), log=log)
    verdict = diagnosis.verdicts[0]
    assert (verdict.cause, verdict.certainty) == (Cause.OTHER_SIZE, Certainty.CONFIRMED)
    assert verdict.evidence == (
        "line 1: the chip has 128 MACs, and the stream is for 64",
        "the stream is for ethos-u55-64, the chip has ethos-u55-128",
    )


def test_the_driver_says_which_npu_it_found(digits: Artifact) -> None:
    log = "I: Ethos-U config. product=0, cmd_stream_version=0, macs_per_cc=8, shram_size=48"
    diagnosis = doctor(digits, log=log)
    assert causes(diagnosis) == [Cause.OTHER_SIZE]
    assert said(diagnosis, "NPU") == (
        False,
        "the stream is for ethos-u55-64, the chip has ethos-u55-256",
    )


def test_a_log_of_another_file_is_remarked(digits: Artifact) -> None:
    log = """I: Optimizer config. product=0, cmd_stream_version=0, macs_per_cc=8, shram_size=48
Didn't find op for builtin opcode 'LOGISTIC'
NPU status=0x00000010, qread=9999999"""
    assert doctor(digits, log=log).remarks == (
        "the log is of a stream for ethos-u55-256, and this artifact is for ethos-u55-64: "
        "another file?",
        "the log lacks LOGISTIC, which this artifact does not have: another file?",
        "QREAD 9999999 is beyond every stream of this artifact: another file?",
    )


def test_addresses_of_a_log_are_checked(digits: Artifact) -> None:
    log = """I: invoke_async: base_addr[0]=0x00000000_70000000, size=3484864
I: invoke_async: base_addr[1]=0x00000000_30000008, size=1509728"""
    diagnosis = doctor(digits, find_board("corstone300"), log=log)
    assert causes(diagnosis) == [Cause.ARENA_UNALIGNED, Cause.UNREACHED]


def test_qread_is_an_operation_of_the_users_layer(digits: Artifact) -> None:
    ((_, program),) = npu_steps(digits)
    place = sorted(program.origins)[2]
    (found,) = doctor(digits, status=0x10, qread_bytes=place).places
    assert str(found) == (
        'operation 2 of 35, OP_CONV of digits.tflite, operator 1 CONV_2D -> "conv1"'
    )


def test_an_operator_on_the_cpu_must_be_registered(digits: Artifact) -> None:
    alone = mizzen.load(DIGITS)
    told = Firmware(operators=("CONV_2D",))
    diagnosis = doctor(alone, firmware=told)
    assert causes(diagnosis) == [Cause.OPERATOR_MISSING]
    assert said(diagnosis, "NPU") == (True, "the artifact has nothing for an NPU")


def test_a_memory_mode_that_the_board_has_not(digits: Artifact) -> None:
    board = find_board("himax_we2")
    diagnosis = doctor(digits, board)
    assert not diagnosis.failures
    assert said(diagnosis, "memory mode") == (
        True,
        "compiled for Shared_Sram, looked at as Sram_Only: that alone stops nothing",
    )
    with pytest.raises(MizzenError) as caught:
        doctor(digits, board, Firmware(memory_mode="Shared_Sram"))
    assert caught.value.diagnostic.code == "E415"


@pytest.mark.parametrize(
    ("log", "advice"),
    [
        (
            "Failed to resize buffer. Requested: 1536, available 900, missing: 636",
            "make it 2000 bytes, which the network needs",
        ),
        (
            "Failed to get registration from op code CUSTOM",
            "call AddEthosU() of a MicroMutableOpResolver that has room for them",
        ),
    ],
)
def test_advice_has_the_artifacts_numbers(log: str, advice: str, digits: Artifact) -> None:
    (verdict,) = doctor(digits, log=log).verdicts
    assert verdict.certainty is Certainty.NAMED
    assert verdict.advice == advice


@pytest.mark.parametrize(
    ("driver", "holds", "said_of_it"),
    [
        ("0.16.0", False, "COP2, and driver 0.16.0 takes COP1 alone"),
        ("1.1.0", None, "COP2; whether driver 1.1.0 takes it is not known here"),
        (None, None, "COP2, for new drivers only: --driver-version says which"),
    ],
)
def test_a_payload_that_old_drivers_do_not_know(
    driver: str | None, holds: bool | None, said_of_it: str, cop2: Artifact
) -> None:
    diagnosis = doctor(cop2, firmware=Firmware(driver=driver))
    assert said(diagnosis, "payload") == (holds, said_of_it)
    assert causes(diagnosis) == ([] if holds is None else [Cause.PAYLOAD_FORM])


def test_a_driver_that_refuses_the_form_of_a_payload(cop2: Artifact) -> None:
    log = "E: Custom Operator Payload: 844123971 is not correct, expected 31504f43"
    verdict = doctor(cop2, firmware=Firmware(driver="0.16.0"), log=log).verdicts[0]
    assert (verdict.cause, verdict.certainty) == (Cause.PAYLOAD_FORM, Certainty.CONFIRMED)
    assert verdict.evidence[0] == "line 1: the payload starts with COP2"
