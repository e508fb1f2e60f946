#!/usr/bin/env python3
"""bench/cores.py: what a second core brings: a server and its clients on one core, against a server of two loops
with twice the clients on both.

    bench/cores.py [--rounds N] [--seconds S] [--leat PATH] [--json] [--doc FILE]

Handshakes: `leat perf client --handshakes`, 16 at once for each core, certificate not checked. Requests: 1,024
bytes up and down, a stream each, on 16 connections with 64 at once for each core. Server and clients are two
processes, a thread of each kept on each core (--pin). Requests to two loops are measured in two ways: each loop with
its own clients on its core (--own-loop), as where a network device brings a flow to one core; and with clients whose
connections are spread over the loops by their IDs, so that half of the packets go from a core to the other.
Handshakes are always spread. What the machine itself gives stands beside both: two servers of one loop, which have nothing in common, a core each: with their
clients on the same core (near), and with those on the other core (far). All take turns, in an order that changes
each round, and ratios are taken within a round. Operations a CPU second, of all four threads, stand beside the
rates: they tell a core that waited from one that had more to do.

--doc replaces the section of that file which this program wrote before, or appends it.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import record

MARK = "bench/cores.py"
SIZE = 1024
WORKS = {"handshakes": lambda n: ["--handshakes", "-P", str(16 * n), "-c", str(n)],
         "requests": lambda n: ["--requests", "--up", str(SIZE), "--down", str(SIZE), "-P", str(64 * n), "-c",
                                str(16 * n)]}


# One core; two loops on two, with their own clients and with clients of both; two servers, a core each.
SETUPS = {"handshakes": ("one", "mixed", "near", "far"), "requests": ("one", "own", "mixed", "near", "far")}


class Run:
    """A server and its clients, one thread of each for each core."""

    def __init__(self, args, work, cores, client_cores, *options):
        pin = lambda: os.sched_setaffinity(0, cores)
        self.pin_client = lambda: os.sched_setaffinity(0, client_cores)
        self.server = subprocess.Popen(
            [args.leat, "perf", "server", "--listen", "127.0.0.1:0", "--threads", str(len(cores)), "--pin"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=pin)
        line = self.server.stderr.readline()
        found = re.search(r"listening on (\S+)", line)
        if not found:
            sys.exit(f"cores.py: the server does not start: {line}")
        self.command = [args.leat, "perf", "client", found.group(1), *WORKS[work](len(cores)), "--threads",
                        str(len(cores)), "--pin", "-t", str(args.seconds), "-i", "0", "--json", *options]

    def start(self):
        self.before = record.cpu_of(self.server)
        self.client = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                       preexec_fn=self.pin_client)

    def end(self):
        """Operations a second, and CPU seconds that an operation took at both ends."""
        out, _ = self.client.communicate()
        cpu = record.cpu_of(self.server) - self.before
        if self.client.returncode != 0:
            sys.exit(f"cores.py: the client ended with {self.client.returncode}")
        self.server.send_signal(signal.SIGTERM)
        self.server.stderr.read()
        self.server.stderr.close()
        self.server.wait(60)
        end = json.loads(out)["end"]
        return end["sum"]["ops_per_second"], (cpu + end["cpu_seconds"]) / end["sum"]["operations"]


def once(args, work, setup):
    first, second = sorted(os.sched_getaffinity(0))[:2]
    both = {first, second}
    places = {"one": [({first}, {first})], "own": [(both, both, "--own-loop")], "mixed": [(both, both)],
              "near": [({first}, {first}), ({second}, {second})],
              "far": [({first}, {second}), ({second}, {first})]}[setup]
    runs = [Run(args, work, *each) for each in places]
    for run in runs:
        run.start()
    ends = [run.end() for run in runs]
    rate = sum(each for each, _ in ends)
    return rate, 1 / (sum(each * cpu for each, cpu in ends) / rate)


def ratios(runs, work, over, under, part=0):
    return [a[part] / b[part] for a, b in zip(runs[work, over], runs[work, under])]


def cell(values, digits):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


NAMES = {"one": "one core", "own": "two loops, each with its clients on its core",
         "mixed": "two loops, clients of both on both cores", "near": "two servers, near", "far": "two servers, far"}


def report(args, runs):
    lines = [
        "## One core and two", "",
        f"`{MARK} --rounds {args.rounds} --seconds {args.seconds}`, {record.now()}, on {record.machine()}; load "
        f"average {os.getloadavg()[0]:.1f} at the end. A server and its clients on one core, against two loops and "
        f"twice the clients on two; and two servers of one loop, a core each, with their clients on the same core "
        f"(near) or on the other (far). 16 handshakes at once a core, and requests of {SIZE:,} bytes each way, 64 at "
        f"once on 16 connections a core. Medians of {args.rounds} rounds in turn, with the least and the most; the "
        "target is 1.8 times one core.", "",
        "| | a second | times one core | a CPU second, to one core's |", "| --- | --- | --- | --- |"]
    for work in WORKS:
        for setup in SETUPS[work]:
            lines.append(f"| {work}, {NAMES[setup]} | {cell([rate for rate, _ in runs[work, setup]], 0)} | "
                         f"{cell(ratios(runs, work, setup, 'one'), 2)} | "
                         f"{cell(ratios(runs, work, setup, 'one', 1), 2)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--leat", default=os.path.join(record.ROOT, "build/release/cli/leat"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--doc")
    args = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("cores.py: there is one core")
    names = [(work, setup) for work in WORKS for setup in SETUPS[work]]
    runs = {name: [] for name in names}
    for turn in range(args.rounds):
        at = turn % len(names)
        for work, setup in names[at:] + names[:at]:
            runs[work, setup].append(once(args, work, setup))
            print(f"round {turn + 1}: {work}, {setup}: {runs[work, setup][-1][0]:,.0f} a second", file=sys.stderr)
    text = report(args, runs)
    print(json.dumps({work: {setup: runs[work, setup] for setup in SETUPS[work]} for work in WORKS}) if args.json else text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
