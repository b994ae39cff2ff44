"""Four processes of two hosts with two each against one process, and the death of a host.

    python benchmarks/two_hosts.py [--network loopback|namespaces] [--out RESULTS.jsonl]

A host is a torchrun with an address of its own: on loopback, or (Linux, as root) in a network
namespace with a name, a network device and an address of its own, connected to the other one alone.
A fit by all must equal that of one process. Then all processes of one host kill themselves, with
their torchrun, at the same step: of the host that has the rendezvous and of the other one. The
host that is left must end by itself with a message, and with --resume both hosts must end as if
nothing had happened.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from distributed import ENVIRONMENT, FIT, LIMIT, TORCHRUN, fit, posterior, record, write_crowd

PROGRAM = ["-m", "annotrace"]
WORKER = [str(Path(__file__).with_name("distributed.py")), "work"]
STEP = 100


@dataclass
class Host:
    """Where a torchrun runs: what enters the host, its address, and its network device."""

    number: int
    enter: list[str]
    address: str
    device: str

    def start(self, endpoint: str, command: list[str]) -> subprocess.Popen[str]:
        """Start two processes, the first of all processes on host 0."""
        place = ["--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
        place += ["--rdzv-id", "two", "--rdzv-endpoint", endpoint, "--local-addr", self.address]
        place += ["--rdzv-conf", f"is_host={int(self.number == 0)}"]
        return subprocess.Popen(
            [*self.enter, *TORCHRUN, *place, *command],
            env=ENVIRONMENT | {"GLOO_SOCKET_IFNAME": self.device},
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def on_loopback() -> Iterator[list[Host]]:
    yield [Host(number, [], f"127.0.0.{number + 1}", "lo") for number in range(2)]


@contextmanager
def in_namespaces() -> Iterator[list[Host]]:
    """Two network namespaces with a cable between them, which end with this block."""
    with ExitStack() as stack:
        homes = []
        for _ in range(2):
            home = subprocess.Popen(["unshare", "--net", "--uts", "sleep", "900"])
            stack.callback(home.wait)
            stack.callback(home.kill)
            homes.append(home.pid)
        time.sleep(1)
        hosts = [
            Host(number, ["nsenter", f"--target={home}", "--net", "--uts"], address, "net0")
            for number, (home, address) in enumerate(
                zip(homes, ("10.99.0.1", "10.99.0.2"), strict=True)
            )
        ]
        cable = f"ip link add net0 type veth peer name net0 netns {homes[1]}"
        subprocess.run([*hosts[0].enter, *cable.split()], check=True)
        for host in hosts:
            set_up = f"hostname host{host.number} && ip link set lo up && ip link set net0 up"
            set_up += f" && ip addr add {host.address}/24 dev net0"
            subprocess.run([*host.enter, "sh", "-c", set_up], check=True)
        yield hosts


NETWORKS = {"loopback": on_loopback, "namespaces": in_namespaces}


def run_on(hosts: list[Host], command: list[str]) -> tuple[list[int], str]:
    """Run a command on all hosts; return how each has ended, and what all said."""
    endpoint = f"{hosts[0].address}:{random.randrange(20_000, 30_000)}"
    started = [host.start(endpoint, command) for host in hosts]
    said = [each.communicate(timeout=300)[1] for each in started]
    return [each.returncode for each in started], "".join(said)


def fit_on(hosts: list[Host], out: str, *, resume: bool = False) -> bool:
    """Fit on all hosts, undisturbed; return whether that has succeeded, and print if not."""
    arguments = [*FIT.split(), "--out", out, "--quiet", *["--resume"] * resume]
    codes, said = run_on(hosts, [*PROGRAM, *arguments])
    if any(codes):
        print(said, file=sys.stderr)
    return not any(codes)


def lose(hosts: list[Host], victim: int) -> dict:
    """Let all processes of a host die, and resume on both."""
    shutil.rmtree("run", ignore_errors=True)
    Path("killed").unlink(missing_ok=True)
    worker = [*WORKER, f"host{victim}", str(STEP), "step"]
    _, said = run_on(hosts, [*worker, *FIT.split(), "--out", "run", "--quiet"])
    seconds = time.monotonic() - float(Path("killed").read_text())
    messages = said.count("Another process of") + said.count("Interrupted")
    saved = Path("run/checkpoint.bin").exists()
    is_clean = messages >= 1 and saved and seconds < LIMIT
    if not is_clean:
        print(said, file=sys.stderr)
    resumed = fit_on(hosts, "run", resume=saved)
    return {
        "seconds": round(seconds, 1),
        "clean": is_clean,
        "messages": messages,
        "saved": saved,
        "difference": difference("run", "together") if resumed else None,
    }


def difference(one: str, other: str) -> float:
    return float(np.abs(posterior(one) - posterior(other)).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=NETWORKS, default="loopback")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out and options.out.resolve()
    with tempfile.TemporaryDirectory() as folder, NETWORKS[options.network]() as hosts:
        os.chdir(folder)
        write_crowd()
        row = {"network": options.network}
        agreed = fit("alone", 1) and fit_on(hosts, "together")
        far = difference("alone", "together") if agreed else None
        record({"what": "hosts", **row, "difference": far}, out)
        for victim, name in enumerate(("with the rendezvous", "without")):
            record({"what": "host lost", **row, "victim": name, **lose(hosts, victim)}, out)


if __name__ == "__main__":
    main()
