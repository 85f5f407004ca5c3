"""A process that cannot import Vela's package: what Ethos-U needs is all our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
SCRIPT = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("ethosu", "ethos_u_vela"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())

import numpy as np
import mizzen

image = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
for accelerator in sys.argv[2:]:
    artifact = mizzen.compile(sys.argv[1], accelerator)
    proof = artifact.report.proof
    assert artifact.report.compiler == "Mizzen"
    assert proof.inputs > 1 and proof.equal == 1 and not proof.differing
    (step,) = artifact.steps
    assert sum(len(data) for data in step.program.constants.values()) > 2000
    print(*artifact.run(image)[0].ravel())
assert not any(name.partition(".")[0] == "ethosu" for name in sys.modules)
"""


def test_networks_are_compiled_proved_and_run() -> None:
    accelerators = [
        "ethos-u55-32",
        "ethos-u55-128",
        "ethos-u65-512",
        "ethos-u85-256",
        "ethos-u85-2048",
    ]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(DIGITS), *accelerators],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answers = ended.stdout.splitlines()
    assert len(answers) == len(accelerators)
    assert len(set(answers)) == 1
    assert len(answers[0].split()) == 10
