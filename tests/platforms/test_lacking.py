"""Each verb where something is missing that other systems do not have: simulated by taking it away.

What stays is Linux; so these show that nothing asks for what is not there, not that it runs there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mizzen

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DIGITS = ROOT / "examples" / "digits"

WITHOUT_TFLM = "tflite_micro pymetis"
WINDOWS = (
    f"{WITHOUT_TFLM} resource fcntl pwd grp termios "
    "os.fork os.register_at_fork os.killpg os.getpgid os.geteuid os.getuid os.fchown os.fchmod "
    "os.pread os.sysconf os.sched_getaffinity "
    "signal.SIGALRM signal.setitimer signal.ITIMER_REAL signal.pthread_sigmask signal.SIGHUP "
    "signal.SIGQUIT signal.SIGKILL socket.AF_UNIX"
)
MACOS = f"{WITHOUT_TFLM} os.sched_getaffinity"
SYSTEMS = {
    "Windows": {"MIZZEN_LACKS": WINDOWS},
    "Windows without a compiler": {"MIZZEN_LACKS": WINDOWS, "MIZZEN_NO_C_KERNELS": "1"},
    "macOS": {"MIZZEN_LACKS": MACOS},
}


def mizzen_there(system: str, *words: object, status: int = 0) -> str:
    """Run a command as on a system; return what it prints."""
    path = os.pathsep.join((str(HERE / "lacking"), str(ROOT / "src")))
    environment = {**os.environ, "PYTHONPATH": path, **SYSTEMS[system]}
    done = subprocess.run(
        [sys.executable, "-m", "mizzen", *map(str, words)],
        env=environment, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def artifact(system: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DIGITS compiled there, with SOFTMAX on the CPU."""
    folder = tmp_path_factory.mktemp("there")
    printed = mizzen_there(
        system, "compile", DIGITS / "digits.tflite", "--accelerator-config", "ethos-u55-128",
        "--ignore-ops", "SOFTMAX", "--output-dir", folder, "--json",
    )  # fmt: skip
    document: dict[str, Any] = json.loads(printed)
    assert document["holds"]
    assert document["totals"]["operators_on_npu"] == 7
    return folder / "digits_vela.tflite"


def test_an_artifact_is_the_one_compiled_here(artifact: Path, tmp_path: Path) -> None:
    here = mizzen.compile(
        str(DIGITS / "digits.tflite"), accelerator="ethos-u55-128", ignore_ops=["SOFTMAX"]
    )
    assert artifact.read_bytes() == here.data


def test_a_run_gives_the_same(system: str, artifact: Path, tmp_path: Path) -> None:
    mizzen_there(
        system, "run", artifact, "--input", DIGITS / "images.npy", "--output-dir", tmp_path
    )
    (made,) = tmp_path.glob("*.npy")
    images = np.load(DIGITS / "images.npy")
    np.testing.assert_array_equal(np.load(made), mizzen.load(artifact).run(images))


def test_check_report_export_and_emulate(system: str, artifact: Path, tmp_path: Path) -> None:
    mizzen_there(system, "check", DIGITS / "digits.tflite", "--accelerator-config", "ethos-u55-128")
    mizzen_there(system, "report", artifact, "--output", tmp_path / "page.html")
    mizzen_there(
        system, "export", artifact, "--to", "c", "--board", "corstone300",
        "--output-dir", tmp_path / "c",
    )  # fmt: skip
    assert (tmp_path / "page.html").stat().st_size > 1000
    assert (tmp_path / "c" / "runtime" / "mizzen.c").is_file()
    pytest.importorskip("unicorn", reason="Unicorn is not installed")
    mizzen_there(system, "emulate", artifact, "--input", DIGITS / "six.npy")


def test_a_processor_that_needs_unix_sockets_is_refused(artifact: Path, system: str) -> None:
    if "AF_UNIX" not in SYSTEMS[system]["MIZZEN_LACKS"]:
        pytest.skip(f"{system} has Unix sockets")
    words = ("emulate", artifact, "--input", DIGITS / "six.npy", "--cpu", "m55")
    mizzen_there(system, *words, status=2)
