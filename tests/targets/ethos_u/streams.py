"""Real command streams, made by Vela in this process, and the driver payloads around them."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import numpy as np

from mizzen.targets.ethos_u.machine.commands import Arch

# accelerator: (architecture, name in the compiled core, MACs, cores, system configuration, memory)
ACCELERATORS = {
    "ethos-u55-32": (Arch.U55, "EthosU55", 32, 1, "Ethos_U55_Deep_Embedded", "Shared_Sram"),
    "ethos-u55-128": (Arch.U55, "EthosU55", 128, 1, "Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u65-256": (Arch.U65, "EthosU65", 256, 1, "Ethos_U65_High_End", "Dedicated_Sram"),
    "ethos-u65-512": (Arch.U65, "EthosU65", 256, 2, "Ethos_U65_High_End", "Dedicated_Sram"),
    "ethos-u85-256": (Arch.U85, "EthosU85", 256, 1, "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram"),
}

OPTIONS = """
[compiler]
output_format=Raw
cop_format=COP1

[scheduler]
optimize=Performance
arena_size_limit=393216
cpu_tensor_alignment=16
tensor_allocator=HillClimb

[graph]
softmax_int16_neg_exp_range=10.0
"""


@cache
def archive(model: Path, accelerator: str, folder: Path) -> bytes:
    """Compile a TFLite file to Vela's raw archive, written by Vela's own writer to `folder`."""
    import ethosu
    from ethosu import regor
    from ethosu.vela.rawdata_writer import write_rawdata_output_from_model

    _, core, macs, cores, system, memory = ACCELERATORS[accelerator]
    ini = Path(next(iter(ethosu.__path__))) / "config_files" / "Arm" / "vela.ini"
    choice = f"[architecture]\nmacs={macs}\ncores={cores}\n"
    choice += f"[vela]\nsystem_config_name={system}\nmemory_mode_name={memory}\n"
    configuration = choice + ini.read_text()
    compiled = regor.compile(core, model.read_bytes(), "TFLITE", configuration, options=OPTIONS)
    stem = folder / f"{model.stem}-{accelerator}"
    write_rawdata_output_from_model(str(stem), compiled)
    return Path(f"{stem}_vela.npz").read_bytes()


def payload(archived: bytes) -> bytes:
    """The driver payload of an archive, found with NumPy alone."""
    with np.load(io.BytesIO(archived)) as arrays:
        return arrays["cmd_data"].tobytes()
