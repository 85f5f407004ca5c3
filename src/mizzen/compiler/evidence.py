"""Put the manifest of a compilation into its artifact: what was compiled, how, and what it showed.

It goes in last, when the report says all; a manifest of part of a network would be of no file.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.forms import TFLITE, own_ending
from mizzen.artifact.sealing import sealed
from mizzen.compiler.backend import ResolvedTarget
from mizzen.report.manifest import Facts, Source, configuration_of, proved_of


def with_manifest(artifact: Artifact, chosen: ResolvedTarget, network: bytes = b"") -> Artifact:
    """Return an artifact whose file has a manifest, and whose report counts it.

    network  the file that was compiled; without it the manifest names the network alone
    """
    report = artifact.report
    if report is None:  # of a form of networks that another package brings
        return artifact
    facts = Facts(
        tool=f"mizzen {version('mizzen')}",
        compiler=report.compiler,
        source=Source(report.model, sha256(network).hexdigest() if network else ""),
        configuration=configuration_of(report.configuration)
        | chosen.backend.choices(chosen.configuration),
        proof=proved_of(report.proof),
    )
    data = sealed(artifact.data, artifact.name, facts)
    if own_ending(data) == TFLITE:  # the file as it is goes into flash
        added = len(data) - len(artifact.data)
        report = replace(report, flash_bytes=report.flash_bytes + added)
    return Artifact(data, artifact.name, artifact.contents, report)
