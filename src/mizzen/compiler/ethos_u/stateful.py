"""Networks that keep variables, as one NPU operator that keeps them in its own memory.

Vela leaves READ_VARIABLE and ASSIGN_VARIABLE to the CPU, and makes an NPU operator of each part
between them. Where code of our own is asked for and rules take the whole network, it is one
operator. It is proved by many inferences one after the other, each from the state that the one
before left, beside TensorFlow Lite Micro's.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.generator import is_asked
from mizzen.compiler.ethos_u.generator.whole import NotWhole, compiled_whole, whole_model
from mizzen.compiler.ethos_u.outcome import Generated, origins_of
from mizzen.compiler.ethos_u.variables import keeps_variables
from mizzen.compiler.proof.options import Effort, ProofOptions
from mizzen.compiler.tflite_stimuli import network_stimuli
from mizzen.cpu.tflm import CpuKernels
from mizzen.diagnostics import MizzenError
from mizzen.frontends.tflite import Model
from mizzen.report.code import Verdict
from mizzen.report.proof import Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

REASON = "Vela leaves the network's variables to the CPU"
MOST_STEPS = 16
"""Inferences one after the other: state that is wrong shows in what follows."""


def compiled_with_state(
    model: Model, data: bytes, configuration: EthosUConfiguration, options: ProofOptions
) -> Generated | None:
    """Compile a network that keeps variables; None where that is Vela's, or differs."""
    kept_out = bool(configuration.ignore_ops)
    if kept_out or not is_asked(configuration) or not keeps_variables(model):
        return None
    compiled = compiled_whole(whole_model(model), configuration, Verdict.TAKEN, REASON)
    if isinstance(compiled, NotWhole):
        return None
    network = read_network(compiled.network, model.name)
    contents = contents_of(network, origins_of(model, compiled))
    generated = Generated(compiled, frozenset(), None, network, contents=contents)
    if options.effort is Effort.OFF:
        return generated
    artifact = Artifact(compiled.network, model.name, contents, None)
    proof = _proved(model, data, artifact, options)
    if proof is None:
        return None
    return Generated(compiled, frozenset(), None, network, proof=proof, contents=contents)


def _proved(model: Model, data: bytes, artifact: Artifact, options: ProofOptions) -> Proof | None:
    """Execute step by step beside the kernels; None where a result differs."""
    inputs = network_stimuli(model, MOST_STEPS, options.seed)
    steps = [[row[place] for row in inputs] for place in range(MOST_STEPS)]
    try:
        kernels = CpuKernels(data).session()
        wanted = [kernels.run([row[np.newaxis] for row in given]) for given in steps]
    except MizzenError as error:
        said = f"all that the NPU gives because {error.diagnostic.message}"
        return Proof(0, options.seed, unproved=(said,))
    session, digest = artifact.session(), sha256()
    for given, theirs in zip(steps, wanted, strict=True):
        found = session.run(*given)
        ours = found if isinstance(found, tuple) else (found,)
        for one, other in zip(ours, theirs, strict=True):
            if not np.array_equal(np.asarray(one), other[0]):
                return None
            digest.update(np.asarray(one).tobytes())
    count = len(model.main.outputs)
    return Proof(MOST_STEPS, options.seed, digest.hexdigest(), parts=1, equal=count)
