"""Generate code of Mizzen's own for random networks, and execute it beside Vela's.

Run ``python benchmarks/generator_random.py --family u55 u65 --programs 1000``, with ``--json`` for
the figures. Each network is compiled for one of the family's accelerators in one of the memory
modes and systems that it runs in, optimised for either and with less memory in half of all cases;
with ``--default`` as where nothing but the accelerator is named:

`programs`     networks of which something is on the NPU
`own`          of their NPU operators, those that code of our own was generated for
`differences`  those of which some code of ours gave what neither Vela's words nor the reference
               gives, or could not be executed
`hazards`      those with an access of ours that nothing orders, or a part of the shared buffer too
               small
`vela_wrong`   those where ours gave what the reference gives, and Vela's words did not
`vela_faulty`  those without ours because Vela's words cannot be executed, read what nothing has
               written, or race, or its file cannot be read
`undecided`    those where ours gave something else than Vela's words, without a reference
`refused`      those whose words could not be taken apart or scheduled anew otherwise
`failed`       those where Mizzen's generator ended by a mistake

The reference is TensorFlow Lite Micro, and the graph's where that has no kernel. It is asked where
ours and Vela's differ. Numbers of the networks of all but `own` are printed, or are `seeds`.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import random
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from mizzen.compiler.ethos_u.generator import equality
from mizzen.compiler.ethos_u.generator.handed import enclosed
from mizzen.compiler.ethos_u.generator.improve import improved, smallest
from mizzen.compiler.ethos_u.generator.network import outliving, parts_of, with_program
from mizzen.compiler.ethos_u.generator.search import arranged, made
from mizzen.compiler.ethos_u.generator.sequences import BY_RULES, Source

from fuzz_judge import compare
from fuzz_networks import network
from mizzen.artifact.loading import artifact_of
from mizzen.diagnostics import MizzenError
from mizzen.report.code import CodeChoice, Verdict
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim.machine import Simulator
from mizzen.targets.ethos_u.machine.config import (
    ACCELERATORS,
    EthosUConfiguration,
    Generator,
    Optimise,
)
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.system_config import (
    resolve,
    system_configs,
    usable_memory_modes,
)
from mizzen.targets.ethos_u.machine.vela_ini import BUNDLED, read_files
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

SLOW_SECONDS = 20
"""Of a network that is printed for it."""

KINDS = {
    Verdict.TAKEN: "own",
    Verdict.CORRECTED: "own",
    Verdict.STOPS: "differences",
    Verdict.HAZARD: "hazards",
    Verdict.REFUSED: "refused",
    Verdict.FAILED: "failed",
}
THEIRS = (Verdict.REFUSED, Verdict.HAZARD)
"""What comes of Vela's faults where code of ours is made of its words."""
FIGURES = ("programs", *sorted({*KINDS.values(), "vela_wrong", "vela_faulty", "undecided"}))


EVERYWHERE = "Sram_Only"
"""The memory mode that all systems have."""
CACHE_BYTES = (None, None, 1 << 14, 1 << 12)
"""Of the memory for maps; None is what the mode says."""


def drawn(family: str, number: int) -> EthosUConfiguration:
    """Return what a network is compiled for: an accelerator of a family, a system and a mode."""
    rng = random.Random(number)
    accelerator = rng.choice([name for name in ACCELERATORS if family in name])
    sections = read_files((BUNDLED,))
    systems = [name for name in system_configs(sections) if family in name.lower()]
    row = resolve(accelerator, system_config=rng.choice(systems), memory_mode=EVERYWHERE)
    found = resolve(
        accelerator,
        system_config=row.system.name,
        memory_mode=rng.choice(usable_memory_modes(sections, row.accelerator, row.system)),
        optimise=rng.choice(list(Optimise)).value,
        arena_cache_size=rng.choice(CACHE_BYTES),
    )
    return replace(found, generator=Generator.OWN)


def _said(configuration: EthosUConfiguration) -> str:
    rows = configuration.accelerator, configuration.system, configuration.mode
    names = [*(row.name for row in rows), configuration.optimise.value]
    return " ".join([*names, str(configuration.arena_cache_size_bytes)])


def defaults(family: str, number: int) -> EthosUConfiguration:
    """Return an accelerator of a family in the system and mode that are its defaults."""
    names = [name for name in ACCELERATORS if family in name]
    return replace(resolve(random.Random(number).choice(names)), generator=Generator.OWN)


def found_in(
    data: bytes, configuration: EthosUConfiguration, number: int
) -> Iterator[tuple[str, str]]:
    """Return the kinds of the NPU operators of a network, each with words; a code of each."""
    name = _said(configuration)
    compiled = generate(data, configuration)
    if not isinstance(compiled, Compiled):
        return
    try:
        parts_of(compiled)
    except MizzenError as error:
        yield "vela_faulty", f"{name} {error.diagnostic.message}"
        return
    source = Source(data, NetworkForm.TFLITE)
    try:
        find = smallest if configuration.optimise is Optimise.SIZE else improved
        choices = find(compiled, source, configuration).choices
    except Exception as error:
        faulty = _is_faulty(compiled)
        is_theirs = faulty and isinstance(error, MizzenError)
        yield "vela_faulty" if is_theirs else "failed", f"{name} {_place(error)}"
        return
    for place, choice in enumerate(choices):
        for kind, words in _kinds(choice, compiled, place, source, configuration, number):
            yield kind, f"{name} {words}"


def _place(error: Exception) -> str:
    row = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {row.filename}:{row.lineno}: {error}"


def _kinds(
    choice: CodeChoice,
    compiled: Compiled,
    place: int,
    source: Source,
    configuration: EthosUConfiguration,
    number: int,
) -> Iterator[tuple[str, str]]:
    """Return what an operator counts for, and what code of ours that was not taken does."""
    seen = dict.fromkeys(((choice.verdict, choice.reason),))
    seen |= dict.fromkeys((row.verdict, row.reason) for row in choice.tried)
    by_verdict = dict(reversed(seen))
    for verdict, reason in by_verdict.items():
        if verdict is Verdict.DIFFERS:
            if len(parts_of(compiled)[1]) > 1:
                yield "differences", reason
            else:
                yield from _decided(compiled, source, configuration, number)
        elif _is_velas(verdict, choice, compiled, place):
            yield "vela_faulty", reason
        else:
            yield KINDS[verdict], reason


def _is_velas(verdict: Verdict, choice: CodeChoice, compiled: Compiled, place: int) -> bool:
    """Whether what became of our code is a fault of Vela's words."""
    if verdict in THEIRS:
        return choice.operations != BY_RULES and _is_faulty(compiled)
    return verdict is Verdict.STOPS and _stops(compiled, place)


def _stops(compiled: Compiled, place: int) -> bool:
    """Whether Vela's words stop on the inputs on which ours do."""
    program = parts_of(compiled)[1][place].program
    try:
        equality.differing(program, program)
    except MizzenError:
        return True
    return False


def _is_faulty(compiled: Compiled) -> bool:
    """Whether Vela's words cannot be executed, race, or read what nothing has written.

    Where one operator reads that, those before it seem to hand it on.
    """
    network, parts = parts_of(compiled)
    try:
        for part in parts:
            Simulator(part.program)
        if len(parts) == 1:
            return bool(find_hazards(parts[0].program).findings)
        found = enclosed(network, parts)
        return any(find_hazards(row.program, row.surroundings).findings for row in found)
    except MizzenError:
        return True


def _decided(
    compiled: Compiled, source: Source, configuration: EthosUConfiguration, number: int
) -> Iterator[tuple[str, str]]:
    """Return what the reference says of code that computes something else than Vela's."""
    model, (part,) = parts_of(compiled)
    names = (row.name for row in part.program.inputs)
    first = dict(zip(names, equality.drawn(part.program), strict=True))
    theirs = compare(source.data, artifact_of(compiled.network, "vela"), number, first=first)
    source = replace(source, outliving=outliving(model, part))
    rows: dict[str, str] = {}
    for ours in _programs(part.program, source, configuration):
        words = equality.differing(ours, part.program)
        if not words:
            continue
        artifact = artifact_of(with_program(compiled, model, part, ours), "own")
        found = compare(source.data, artifact, number, first=first)
        if found is None:
            kind = "vela_wrong" if theirs else "differences"
        else:
            kind = "undecided" if found.kind == "nothing" else "differences"
        rows[kind] = f"{words}; ours: {found and found.text}; Vela's: {theirs and theirs.text}"
    yield from rows.items()


def _programs(
    program: Program, source: Source, configuration: EthosUConfiguration
) -> Iterator[Program]:
    """Return all code of ours for an NPU operator."""
    for begin in (source.made, source.lifted):
        try:
            for sequence in arranged(begin(program).sequence, configuration):
                yield made(sequence, program, configuration).program
        except MizzenError:
            continue


def main() -> None:
    """Generate, execute, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--family", choices=["u55", "u65"], nargs="+", default=["u55"])
    parser.add_argument("--programs", type=int, default=100, help="of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--numbers", type=int, nargs="+", help="of the networks; these alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--default", action="store_true", help="systems, modes and memory")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found: Counter[str] = Counter(dict.fromkeys(FIGURES, 0))
    seeds: defaultdict[str, list[str]] = defaultdict(list)
    begun = time.process_time()
    configured = defaults if arguments.default else drawn
    numbers = arguments.numbers or range(arguments.first, arguments.first + arguments.programs)
    for number in numbers:
        for family in arguments.family:
            start = time.process_time()
            data = network(family, arguments.seed, number)
            kinds = list(found_in(data, configured(family, number), number))
            found["programs"] += bool(kinds)
            for kind, words in kinds:
                found[kind] += 1
                if kind != "own":
                    seeds[kind].append(f"{family} {number}")
                    if not arguments.json:
                        print(kind, family, number, words, flush=True)
            took = time.process_time() - start
            if took > SLOW_SECONDS and not arguments.json:
                print("slow", family, number, f"{took:.0f} s", flush=True)
    if arguments.json:
        print(json.dumps({"figures": dict(found), "seeds": dict(seeds)}))
        return
    each = (time.process_time() - begun) / max(1, len(numbers) * len(arguments.family))
    print(dict(found), f"{each:.2f} s each")
    for kind, rows in seeds.items():
        print(kind, ", ".join(rows))


if __name__ == "__main__":
    main()
