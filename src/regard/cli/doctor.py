"""The environment that regard runs in: versions, threads, memory, and what of the extras is installed."""

import os
import re
import time
from pathlib import Path
from typing import Any

from regard import __version__
from regard.cli import console
from regard.cli.arguments import AsJson

DEVELOPMENT = {"dev", "docs"}
"""Extras that only who works on regard needs."""
NAME = re.compile(r"[\w.-]+")
EXTRA = re.compile(r"extra == ['\"](\w+)['\"]")
PROBE = 1024
"""Rows and columns of the matrices whose product is timed."""
N_PROBES = 5


def doctor(json: AsJson = False) -> None:
    """Tell whether this environment is fit: versions, threads, memory, bfloat16, GPU, extras."""
    report = environment()
    if json:
        console.write_json(report)
        return
    packages, warnings = report.pop("packages"), report.pop("warnings")
    console.facts((name, str(value)) for name, value in report.items())
    console.OUT.print()
    console.facts((extra, _listed(found)) for extra, found in packages.items())
    for warning in warnings:
        console.line(f"! {warning}", "yellow")


def environment() -> dict[str, Any]:
    import platform
    import shutil

    import torch

    from regard.training.machine import Machine, has_bfloat16

    machine = Machine.here()
    packages = installed()
    device = torch.device("cuda" if machine.gpu else "cpu")
    threads = torch.get_num_threads()
    return {
        "regard": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        "cores": machine.cores,
        "threads": threads,
        "memory": console.size(machine.memory),
        "disk free here": console.size(shutil.disk_usage(Path.cwd()).free),
        "gpu": torch.cuda.get_device_name() if machine.gpu else "none",
        "bfloat16 units": "yes" if has_bfloat16(device) else "no",
        "matrix products": f"{_giga_flops(device):,.0f} GFLOP/s",
        "packages": packages,
        "warnings": _warnings(machine.cores, threads, machine.gpu, packages),
    }


def installed() -> dict[str, dict[str, str | None]]:
    """The version of each package that regard needs, by extra; None where it is not installed."""
    from importlib.metadata import requires

    packages: dict[str, dict[str, str | None]] = {}
    for requirement in requires("regard") or ():
        extra = EXTRA.search(requirement)
        group = extra[1] if extra else "needed"
        if group not in DEVELOPMENT and (name := NAME.match(requirement)):
            packages.setdefault(group, {})[name[0]] = _version(name[0])
    return packages


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _giga_flops(device: Any) -> float:
    import torch

    square = torch.randn(PROBE, PROBE, device=device)
    fastest = float("inf")
    for _ in range(N_PROBES):
        began = time.perf_counter()
        float((square @ square)[0, 0])  # waits for the product on a GPU, too
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * PROBE**3 / fastest / 1e9


def _warnings(cores: int, threads: int, gpu: bool, packages: dict[str, dict[str, str | None]]) -> list[str]:
    warnings = [
        f"{name} is missing, but regard cannot run without it; install regard again with pip"
        for name, found in packages.get("needed", {}).items()
        if found is None
    ]
    limit = os.environ.get("OMP_NUM_THREADS")
    if limit is not None and threads < cores:
        warnings.append(
            f"OMP_NUM_THREADS={limit} leaves {cores - threads} of {cores} cores idle; "
            "unset it, unless several processes share this machine"
        )
    if not gpu and "+cu" in (packages.get("needed", {}).get("torch") or ""):
        warnings.append(
            "torch is built for a GPU, but none is visible; check the driver, or install the CPU build"
        )
    return warnings


def _listed(found: dict[str, str | None]) -> str:
    missing = [name for name, release in found.items() if release is None]
    present = [f"{name} {release}" for name, release in found.items() if release is not None]
    return ", ".join(present + [f"{name} (not installed)" for name in missing])
