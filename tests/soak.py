"""500 calls of all tools, some cancelled, some of programs that die, processes killed at random: is memory flat?

    PYTHONPATH=server python tests/soak.py [--calls 500]

Run by hand. The probe is the tests' stand-in, so that the calls are quick and the server is what is measured. Prints
memory and open descriptors as it goes; the exit code is 1 if memory grows by more than a tenth and 10 MB after the
first fifth of the calls, if descriptors grow, or if a process is left.
"""

import argparse
import os
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[1]
KINDS = ("right", "wrong", "diverges", "crash", "exits", "hang", "floods", "broken", "nobackward", "missing")
MEASURING = ("run_repro", "gradcheck_full_horizon", "enable_tracker", "bisect_steps", "diagnose")
TOOLS = (*MEASURING, "scan_patterns", "verify_fix")
KILLED = 0.15  # of the rounds of three calls: one process below the server, whichever, is killed meanwhile


async def call(client, generator, counts):
    """One call; a hanging one is cancelled by the client's own time-out, or ends at its budget."""
    kind, tool = generator.choice(KINDS), generator.choice(TOOLS)
    arguments = {}
    if tool != "verify_fix":  # its arguments are the baseline's: the latest check that disagreed
        arguments["script"] = f"{kind}.py"
    if tool in MEASURING:
        arguments |= {"python": sys.executable, "timeout_s": 2.0 if kind == "hang" else 20.0}
    patience = generator.choice((0.05, 0.3, 60.0, 60.0, 60.0, 60.0))
    try:
        result = await client.call_tool(tool, arguments, read_timeout_seconds=patience)
        outcome = "refused" if result.is_error else result.structured_content["status"]
    except Exception as error:
        if "timed out" not in str(error).lower():
            raise
        outcome = "cancelled"
    counts[outcome] = counts.get(outcome, 0) + 1


async def kill_one(server, generator, counts):
    """Kills a process below the server: a guardian, a probe, or what that has started."""
    await anyio.sleep(generator.uniform(0.1, 1.0))
    below = server.children(recursive=True)
    if below:
        with suppress(psutil.Error):
            generator.choice(below).kill()
            counts["kills"] = counts.get("kills", 0) + 1


async def soak(calls, folder):
    for kind in KINDS[:-1]:
        (folder / f"{kind}.py").write_text("STEPS = 40\n")
    environment = {"PATH": os.environ["PATH"], "WARP_DEBUG_GRADIENTS_WORKSPACE": str(folder)}
    environment["PYTHONPATH"] = str(ROOT / "server")
    command = str(ROOT / "tests" / "server" / "fakes" / "command.py")
    server = StdioServerParameters(command=sys.executable, args=[command, "serve"], env=environment)
    generator, counts, seen = random.Random(0), {}, []
    async with Client(server) as client:
        (process,) = [p for p in psutil.Process().children() if command in p.cmdline()]
        for done in range(0, calls, 3):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(call, client, generator, counts)
                if generator.random() < KILLED:
                    group.start_soon(kill_one, process, generator, counts)
            if done % 30 == 0:
                seen.append((process.memory_info().rss / 1e6, process.num_fds()))
                print(f"{done:5d} calls  {seen[-1][0]:7.1f} MB  {seen[-1][1]:3d} descriptors  {counts}", flush=True)
        await anyio.sleep(1.0)
        left = [p.cmdline() for p in process.children(recursive=True)]
        seen.append((process.memory_info().rss / 1e6, process.num_fds()))
    settled, last = seen[len(seen) // 5], seen[-1]
    print(
        f"after the first fifth {settled[0]:.1f} MB, at the end {last[0]:.1f} MB; descriptors {settled[1]}, {last[1]}"
    )
    print("processes left:", left or "none")
    grown = last[0] > 1.1 * settled[0] + 10 or last[1] > settled[1] + 3
    return 1 if grown or left else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=500)
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(anyio.run(soak, parser.parse_args().calls, Path(scratch)))
