"""Generate code of Mizzen's own for random networks, and execute it beside Vela's.

Run ``python benchmarks/generator_random.py --family u55 --programs 2000``, with ``--json`` for the
figures:

`programs`     networks of which something is on the NPU
`own`          of their NPU operators, those that code of our own was generated for
`differences`  those whose outputs were not what Vela's words compute
`hazards`      those with an access that nothing orders, or a part of the shared buffer too small
`refused`      those whose words could not be taken apart
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import random
from collections import Counter
from dataclasses import replace

from fuzz_networks import network
from mizzen.compiler.ethos_u.generator.improve import improved
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.report.code import Verdict
from mizzen.targets.ethos_u.config import ACCELERATORS, Generator
from mizzen.targets.ethos_u.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

KINDS = {
    Verdict.TAKEN: "own",
    Verdict.DIFFERS: "differences",
    Verdict.STOPS: "differences",
    Verdict.HAZARD: "hazards",
    Verdict.REFUSED: "refused",
    Verdict.NOT_TRIED: "several",
}


def main() -> None:
    """Generate, execute, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--family", choices=["u55", "u65"], default="u55")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = [name for name in ACCELERATORS if arguments.family in name]
    found: Counter[str] = Counter(programs=0, own=0, differences=0, hazards=0, refused=0)
    for number in range(arguments.first, arguments.first + arguments.programs):
        name = random.Random(number).choice(names)
        configuration = replace(resolve(name), generator=Generator.OWN)
        data = network(arguments.family, arguments.seed, number)
        compiled = generate(data, configuration)
        if not isinstance(compiled, Compiled):
            continue
        choices = improved(compiled, Source(data, NetworkForm.TFLITE), configuration).choices
        found["programs"] += bool(choices)
        for choice in choices:
            kind = KINDS[choice.verdict]
            found[kind] += 1
            if kind not in ("own", "several") and not arguments.json:
                print(kind, number, name, choice.reason, flush=True)
    print(json.dumps({"figures": dict(found)}) if arguments.json else dict(found))


if __name__ == "__main__":
    main()
