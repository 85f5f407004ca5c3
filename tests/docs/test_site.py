"""The documentation builds without a warning, and its generated pages say what the tables say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import mizzen
from mizzen.cli.parser import help_texts
from mizzen.documents.checking import keys_of
from mizzen.mesh.machine import key_page, machine_names
from mizzen.mesh.machine.file_format import ArrayKeys, BoardKeys
from mizzen.package.c.kernel_rows import KERNELS
from mizzen.package.c.lowering import RULES as LOWERED
from mizzen.targets.ethos_n.commands import INSTRUCTION_SET
from mizzen.targets.ethos_n.legal import OPERATIONS
from mizzen.targets.ethos_n.legal import rules as ethos_n_rules
from mizzen.targets.ethos_n.patterns import TABLE
from mizzen.targets.ethos_n.sim.inferred import INFERRED
from mizzen.targets.ethos_u.generator.lower import kinds_of
from mizzen.targets.ethos_u.legal.tflite import RULES
from mizzen.targets.ethos_u.machine.commands import Arch, instruction_set
from mizzen.targets.ethos_u.machine.config import ACCELERATORS


@pytest.fixture(scope="module")
def generated(repository: Path) -> dict[str, str]:
    """The generated pages: path -> Markdown."""
    for package in ("torch", "torchao"):
        pytest.importorskip(
            package, reason=f"{package} is not installed, whose operators are listed"
        )
    spec = importlib.util.spec_from_file_location("generate", repository / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; a warning would end its building."""
    for package in ("mkdocs", "torch", "torchao"):
        pytest.importorskip(package, reason=f"{package} is not installed, which the site needs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, check=False, cwd=repository, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_has_generated_pages(site: Path) -> None:
    assert (site / "reference" / "commands-u55" / "index.html").is_file()


def links_of(page: Path) -> set[Path]:
    """Return the pages that the text of a page leads to; its navigation is left out."""
    _, _, article = page.read_text().partition("<article")
    hrefs = re.findall(r'<a [^>]*href="([^"#]+)', article.partition("</article>")[0])
    folders = {(page.parent / href).resolve() for href in hrefs if "://" not in href}
    return {folder / "index.html" for folder in folders if (folder / "index.html").is_file()}


def test_every_page_is_two_clicks_from_home(site: Path) -> None:
    home = site.resolve() / "index.html"
    once = links_of(home)
    twice = {page for first in once for page in links_of(first)}
    assert set(site.resolve().rglob("index.html")) - {home} == (once | twice) - {home}


def test_every_verb_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/command-line.md"]
    assert all(f"\n## {name}\n" in page for name in help_texts())


def test_every_public_name_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/python.md"]
    names = set(mizzen.__all__) - {"__version__"}
    assert all(f"\n## {name}\n" in page for name in names)


def test_every_kernel_and_operator_of_the_c_runtime_is_in_the_reference(
    generated: dict[str, str],
) -> None:
    page = generated["reference/c-runtime.md"]
    for row in KERNELS.values():
        assert f"| `{row.name}` | {row.doc} | " in page
        assert f"`{row.source}.c`" in page
    assert all(f"`{operator.partition('::')[2]}`" in page for operator in LOWERED)


def test_every_name_for_pytorch_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/pytorch.md"]
    assert all(f"\n## {name}\n" in page for name in import_module("mizzen.torch").__all__)


def test_every_code_is_in_the_reference_with_what_it_says(
    generated: dict[str, str], repository: Path
) -> None:
    page = generated["reference/codes.md"]
    sources = [path.read_text() for path in (repository / "src").rglob("*.py")]
    named = {code for text in sources for code in re.findall(r'"([EW]\d{3})"', text)}
    assert len(named) > 200
    for code in named:
        assert re.search(rf"^## {code}\n\n- .*[a-z]{{2,}} .*[a-z]{{2,}}", page, re.MULTILINE), code
    assert "the network may use *budget bytes* bytes of SRAM, but needs *used*" in page


def test_pages_that_messages_name_are_in_a_clone(repository: Path) -> None:
    sources = [path.read_text() for path in (repository / "src").rglob("*.py")]
    named = {page for text in sources for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text)}
    assert len(named) > 4
    assert not [page for page in named if not (repository / page).is_file()]


def test_every_machine_and_key_is_in_the_reference(repository: Path, update_golden: bool) -> None:
    path = repository / "docs" / "reference" / "mesh-machines.md"
    if update_golden:
        path.write_text(key_page.markdown())
    page = path.read_text()
    assert page == key_page.markdown()  # `pytest --update-golden` writes it
    assert all(f"\n### {name}\n" in page for name in machine_names())
    for keys, prefix in ((ArrayKeys, "element.NAME.array."), (BoardKeys, "board.")):
        assert all(f"| `{prefix}{name}` |" in page for name in keys_of(keys))


def test_every_accelerator_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/accelerators.md"]
    assert all(f"| `{name}` |" in page for name in ACCELERATORS)


def test_every_rule_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/operators.md"]
    assert all(f"\n### {rule.id}\n" in page and rule.limit in page for rule in RULES)


def test_every_operation_of_tosa_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/tosa-operations.md"]
    assert all(f"| `{kind}` | " in page for kind in kinds_of(Arch.U85) - {"CUSTOM"})
    assert "| `CONV2D` | Ethos-U55, Ethos-U65, Ethos-U85 |" in page


def test_every_rule_of_ethos_n_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/ethos-n-operations.md"]
    for kind in OPERATIONS:
        _, _, after = page.partition(f"\n## {kind.__name__}\n")
        section = after.partition("\n## ")[0]
        for profile in OPERATIONS[kind].profiles:
            for rule in ethos_n_rules(kind, profile):
                assert f"| `{rule.id}` | {rule.limit} |" in section


def test_every_composite_of_ethos_n_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/ethos-n-composites.md"]
    for row in TABLE:
        assert f"| `{row.name.removeprefix('ethos-n.')}` |" in page
        assert f"\n{row.pattern}\n" in page


@pytest.mark.parametrize("arch", Arch)
def test_every_command_is_in_the_reference(arch: Arch, generated: dict[str, str]) -> None:
    page = generated[f"reference/commands-{arch.name.lower()}.md"]
    assert all(f"`{command.name}`" in page for command in instruction_set(arch).commands)


def test_every_command_of_ethos_n_is_in_the_reference(generated: dict[str, str]) -> None:
    page = generated["reference/commands-ethos-n.md"]
    assert all(f"`{command.name}`" in page for command in INSTRUCTION_SET.commands)
    assert all(f"| `{row.code}` | {row.what} |" in page for row in INFERRED)


def test_every_exception_has_its_test(repository: Path) -> None:
    pages = ("explanation/exceptions.md", "how-to/conformance.md")
    page = "".join((repository / "docs" / name).read_text() for name in pages)
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = (path.read_text() for path in (repository / "tests").rglob("test_*.py"))
    defined = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.M)}
    assert named
    assert not named - defined


def test_every_word_is_that_of_the_code(repository: Path) -> None:
    page = (repository / "docs" / "explanation" / "words.md").read_text()
    names = set(re.findall(r"`([A-Z]\w+)`", page))
    sources = (path.read_text() for path in (repository / "src").rglob("*.py"))
    defined = {name for source in sources for name in re.findall(r"^class (\w+)", source, re.M)}
    codes = {name for name in names if re.fullmatch(r"[A-Z]\d+", name)}
    assert len(names) > 10
    assert not names - defined - codes
