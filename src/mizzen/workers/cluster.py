"""Ray: a cluster that is there, or one of this machine."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from mizzen.diagnostics import fail, install_extra


def connected(workers: int, address: str | None) -> tuple[Any, bool]:
    """Return the module `ray`, connected, and whether this call did it.

    A cluster that this process is connected to already is used as it is. Without an address one is
    started here, with so many workers. E543 without Ray, or where the cluster is not there.
    """
    try:
        module: Any = import_module("ray")
    except ImportError as error:
        raise fail(
            "E543",
            "ray must be installed for this engine, and is not",
            help=install_extra("cluster"),
        ) from error
    if module.is_initialized():
        return module, False
    options: dict[str, Any] = {"num_cpus": workers} if address is None else {"address": address}
    variables = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    try:
        module.init(
            **options,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": variables},
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise fail("E543", f"a cluster must be at {address or 'this machine'}: {error}") from error
    return module, True
