"""What every test may ask for: the folder of real models, one property-test profile, the oracles.

Real models are not part of the repository. They are found in the folder that the environment
variable MIZZEN_MODELS names, or in ``../shared/models`` beside the repository; small inputs with
right values, rebuilt from public reports, in MIZZEN_CASES or ``../shared/cases``.
"""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import Any

import hypothesis
import pytest

from mizzen.targets.ethos_n.network import Network

from . import machine_coverage, pace
from .report.browser import Browser
from .targets.ethos_n import golden

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("MIZZEN_MODELS", REPOSITORY.parent / "shared" / "models"))
CASES = Path(os.environ.get("MIZZEN_CASES", REPOSITORY.parent / "shared" / "cases"))
NETWORKS = (
    "ad01_int8",
    "audio_preprocessor_int8",
    "hello_world_int8",
    "kws_ref_model",
    "micro_speech_quantized",
    "person_detect",
    "pretrainedResnet_quant",
    "vww_96_int8",
)
"""Real models that compilers take, without their `.tflite`."""
ORACLES = {
    "TensorFlow Lite Micro (tflite_micro)": "tflite_micro",
    "LiteRT (ai_edge_litert)": "ai_edge_litert",
    "Vela (ethosu.vela)": "ethosu",
}

# Cores are shared with other work when tests run: time says nothing about an example.
hypothesis.settings.register_profile("mizzen", deadline=None, print_blob=True)
hypothesis.settings.load_profile("mizzen")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the texts that tests compare with what the program prints now",
    )
    parser.addoption(
        "--machine-coverage",
        metavar="FILE",
        help="write what of the simulated NPUs was executed, and what was not",
    )


COVERAGE = pytest.StashKey[machine_coverage.Coverage]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COVERAGE] = machine_coverage.record()


def pytest_collection_finish() -> None:
    """Keep the collector from walking modules and tests, which stay, again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker of several executed to the one that prints."""
    worker: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if worker is not None:
        found = session.config.stash[COVERAGE]
        worker["machine_coverage"] = [[*map(list, found.facts)], [*map(list, found.combinations)]]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    facts, combinations = node.workeroutput.get("machine_coverage", ([], []))
    found = node.config.stash[COVERAGE]
    found.facts |= {tuple(fact) for fact in facts}
    found.combinations |= {tuple(combination) for combination in combinations}


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    coverage = config.stash[COVERAGE]
    path: str | None = config.getoption("--machine-coverage")
    if path:
        Path(path).write_text("\n".join(coverage.listing()) + "\n")
    # What a few chosen tests leave out says nothing.
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS
    if lines := [line for text in coverage.summary(holes=whole) for line in wrap(text, 100)]:
        terminalreporter.section("operations of the simulated NPUs")
        terminalreporter.write("\n".join(lines) + "\n")


@pytest.fixture
def velas_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test compiles has Vela's code: it knows its words or figures, or is about Vela."""
    from mizzen.compiler.ethos_u import makers

    def velas(_: Any, theirs: Callable[[], Any], __: Any) -> Any:
        return theirs()

    monkeypatch.setattr(makers, "_made", velas)


@pytest.fixture(scope="session")
def update_golden(pytestconfig: pytest.Config) -> bool:
    """Whether golden texts are to be rewritten."""
    return bool(pytestconfig.getoption("--update-golden"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def slowness() -> float:
    """How many times slower this machine is than the one that budgets of time were set on."""
    return pace.slowness()


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of real models; skips the test where there is none."""
    if not MODELS.is_dir():
        pytest.skip(f"no real models: {MODELS} is no folder (set MIZZEN_MODELS)")
    return MODELS


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of small inputs with right values; skips the test where there is none."""
    if not CASES.is_dir():
        pytest.skip(f"no cases: {CASES} is no folder (set MIZZEN_CASES)")
    return CASES


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Headless Chromium; a test that shows it something is skipped where it is not installed."""
    return Browser(tmp_path)


@pytest.fixture(scope="session")
def model_file(models: Path) -> Callable[[str], Path]:
    """Return the path of a real model by file name; skips the test where it is missing."""

    def find(name: str) -> Path:
        if not (models / name).is_file():
            pytest.skip(f"no real model {name} in {models}")
        return models / name

    return find


@pytest.fixture(params=NETWORKS)
def network_file(request: pytest.FixtureRequest, model_file: Callable[[str], Path]) -> Path:
    """Every real network in turn; skips the test where it is missing."""
    return model_file(f"{request.param}.tflite")


def pytest_report_header() -> list[str]:
    """Say which oracles and models this run has: a silent skip is a hole."""
    present = [name for name, module in ORACLES.items() if importlib.util.find_spec(module)]
    absent = [name for name in ORACLES if name not in present]
    files = sorted(MODELS.glob("*.tflite"))
    lines = [f"oracles: {', '.join(present) or 'none'}"]
    lines += [f"oracles missing: {', '.join(absent)}"] if absent else []
    return [*lines, f"models: {len(files)} in {MODELS}"]


@pytest.fixture(scope="session")
def tosa_oracle() -> Any:
    """Arm's reference model of TOSA: called with a graph and its inputs, it gives the outputs."""
    from .reference.tosa_oracle import find

    return find()


@pytest.fixture(scope="session")
def off_pytorch() -> Any:
    """Say how far each operator on an NPU is off PyTorch's integers: see `torch.eager`."""
    from .torch.eager import differences

    return differences


@pytest.fixture
def golden_network() -> Callable[[str], Network]:
    """Return a network of Arm's Ethos-N answers, or skip the test if they are not there."""

    def find(name: str) -> Network:
        if not golden.ETHOS_N.exists():
            pytest.skip(golden.MISSING)
        return golden.read_network(golden.ETHOS_N / "networks-23", name)

    return find
