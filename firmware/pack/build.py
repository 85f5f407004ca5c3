"""Make the CMSIS pack of the C runtime: ``make pack``.

The pack's description is made of the list of the runtime's sources, so that it lacks none. Both
files go to ``dist``: the description, and the pack, which is a zip file.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import mizzen
from mizzen.files import write_files
from mizzen.package.c.kernel_rows import KERNELS, sources_of
from mizzen.package.firmware import firmware_folder

VENDOR, NAME = "Mizzen", "mizzen"
SCHEMA_VERSION = "1.7.36"
CLASS = "Machine Learning"
DRIVER = {"Cclass": CLASS, "Cgroup": "NPU Support", "Csub": "Ethos-U Driver"}
CORES = ("Cortex-M4", "Cortex-M7", "Cortex-M33", "Cortex-M52", "Cortex-M55", "Cortex-M85")
NPU = {
    "Core Driver": ("npu_driver.c", "the NPU by Arm's Ethos-U core driver", "driver"),
    "Registers": ("npu_registers.c", "the NPU by its registers, without a driver", "cores"),
}
"""Variants of what drives the NPU: source, what it is, condition."""
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""Of every file in the zip, so that the same sources make the same pack."""


def sources() -> Sequence[str]:
    """Return the runtime's sources, without what drives an NPU, by their paths in the pack."""
    runtime = firmware_folder() / "runtime"
    npu = {source for source, *_ in NPU.values()}
    core = sorted(path.name for path in runtime.glob("*.c") if path.name not in npu)
    return [f"runtime/{name}" for name in core] + [
        f"runtime/kernels/{name}" for name in sources_of(KERNELS)
    ]


def description(version: str, url: str) -> bytes:
    """Return the `.pdsc`."""
    package = ElementTree.Element(
        "package",
        {
            "schemaVersion": SCHEMA_VERSION,
            "xmlns:xs": "http://www.w3.org/2001/XMLSchema-instance",
            "xs:noNamespaceSchemaLocation": "PACK.xsd",
        },
    )
    _text(package, "vendor", VENDOR)
    _text(package, "name", NAME)
    _text(package, "description", "C runtime for networks that Mizzen compiled for Arm Ethos-U")
    _text(package, "url", url)
    _text(package, "license", "LICENSE")
    _text(ElementTree.SubElement(package, "releases"), "release", "C runtime", version=version)
    conditions = ElementTree.SubElement(package, "conditions")
    _conditions(conditions)
    components = ElementTree.SubElement(package, "components")
    _components(components, version)
    ElementTree.indent(package)
    return ElementTree.tostring(package, encoding="utf-8", xml_declaration=True) + b"\n"


def _text(parent: ElementTree.Element, tag: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, tag, attributes).text = text


def _conditions(conditions: ElementTree.Element) -> None:
    cores = ElementTree.SubElement(conditions, "condition", id="cores")
    for core in CORES:
        ElementTree.SubElement(cores, "accept", Dcore=core)
    driver = ElementTree.SubElement(conditions, "condition", id="driver")
    ElementTree.SubElement(driver, "require", condition="cores")
    ElementTree.SubElement(driver, "require", DRIVER)
    npu = ElementTree.SubElement(conditions, "condition", id="npu")
    ElementTree.SubElement(npu, "require", condition="cores")
    ElementTree.SubElement(npu, "require", Cclass=CLASS, Cgroup=VENDOR, Csub="NPU")


def _components(components: ElementTree.Element, version: str) -> None:
    _component(
        components, version, "Runtime", None, "npu", "the runtime and its kernels", sources()
    )
    for variant, (source, what, condition) in NPU.items():
        _component(components, version, "NPU", variant, condition, what, [f"runtime/{source}"])


def _component(
    components: ElementTree.Element,
    version: str,
    sub: str,
    variant: str | None,
    condition: str,
    what: str,
    files: Iterable[str],
) -> None:
    names = {"Cclass": CLASS, "Cgroup": VENDOR, "Csub": sub, "Cversion": version}
    if variant is not None:
        names["Cvariant"] = variant
    component = ElementTree.SubElement(components, "component", {**names, "condition": condition})
    _text(component, "description", what)
    inside = ElementTree.SubElement(component, "files")
    for folder in ("runtime/", "runtime/kernels/"):
        ElementTree.SubElement(inside, "file", category="include", name=folder)
    for name in files:
        ElementTree.SubElement(inside, "file", category="source", name=name)


def pack_files(version: str, url: str) -> Mapping[str, bytes]:
    """Return what is in the pack, by path: the description, the licence, all of the runtime."""
    root = firmware_folder()
    inside = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / "runtime").rglob("*"))
        if path.is_file()
    }
    licence = (Path(__file__).parents[2] / "LICENSE").read_bytes()
    return {f"{VENDOR}.{NAME}.pdsc": description(version, url), "LICENSE": licence, **inside}


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a zip file, the same for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, FIRST_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return buffer.getvalue()


def main(words: Sequence[str] | None = None) -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output-dir", default="dist", help="(default: %(default)s)")
    parser.add_argument("--url", default="", help="where the pack is published, for its updates")
    options = parser.parse_args(words)
    files = pack_files(mizzen.__version__, options.url)
    pdsc = f"{VENDOR}.{NAME}.pdsc"
    folder = Path(options.output_dir)
    write_files(
        {
            folder / pdsc: files[pdsc],
            folder / f"{VENDOR}.{NAME}.{mizzen.__version__}.pack": packed(files),
        },
        folder,
    )
    print(f"{folder}: {len(files)} files, {len(sources())} sources")
    return 0


if __name__ == "__main__":
    sys.exit(main())
