#!/usr/bin/env python3
"""bench/cores.py: what a second core brings: a server and its clients on one core, against a server of two loops
with twice the clients on both.

    bench/cores.py [--rounds N] [--seconds S] [--leat PATH] [--json] [--doc FILE]

Handshakes: `leat perf client --handshakes`, 16 at once for each core, certificate not checked. Requests: 1,024
bytes up and down, a stream each, on 16 connections with 64 at once for each core. Server and clients are two
processes that share their cores, a thread of each for each core; the system places the threads. Connections are
spread over the loops by their IDs, so half of the packets go from a core to the other. What the machine itself
gives stands beside it: two servers of one loop, which have nothing in common, a core each: with their clients on
the same core (near), and with those on the other core (far). All take turns, in an order that changes each round, and
ratios are taken within a round.

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


SETUPS = ("one", "two", "near", "far")  # one core; two loops on two; two servers, a core each


class Run:
    """A server and its clients, one thread of each for each core."""

    def __init__(self, args, work, cores, client_cores):
        pin = lambda: os.sched_setaffinity(0, cores)
        self.pin_client = lambda: os.sched_setaffinity(0, client_cores)
        self.server = subprocess.Popen(
            [args.leat, "perf", "server", "--listen", "127.0.0.1:0", "--threads", str(len(cores))],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=pin)
        line = self.server.stderr.readline()
        found = re.search(r"listening on (\S+)", line)
        if not found:
            sys.exit(f"cores.py: the server does not start: {line}")
        self.command = [args.leat, "perf", "client", found.group(1), *WORKS[work](len(cores)), "--threads",
                        str(len(cores)), "-t", str(args.seconds), "-i", "0", "--json"]

    def start(self):
        self.client = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                       preexec_fn=self.pin_client)

    def end(self):
        """Operations a second."""
        out, _ = self.client.communicate()
        if self.client.returncode != 0:
            sys.exit(f"cores.py: the client ended with {self.client.returncode}")
        self.server.send_signal(signal.SIGTERM)
        self.server.stderr.read()
        self.server.stderr.close()
        self.server.wait(60)
        return json.loads(out)["end"]["sum"]["ops_per_second"]


def once(args, work, setup):
    first, second = sorted(os.sched_getaffinity(0))[:2]
    places = {"one": [({first}, {first})], "two": [({first, second}, {first, second})],
              "near": [({first}, {first}), ({second}, {second})],
              "far": [({first}, {second}), ({second}, {first})]}[setup]
    runs = [Run(args, work, *each) for each in places]
    for run in runs:
        run.start()
    return sum(run.end() for run in runs)


def ratios(runs, work, over, under):
    return [a / b for a, b in zip(runs[work, over], runs[work, under])]


def cell(values, digits):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def report(args, runs):
    lines = [
        "## One core and two", "",
        f"`{MARK} --rounds {args.rounds} --seconds {args.seconds}`, {record.now()}, on {record.machine()}; load "
        f"average {os.getloadavg()[0]:.1f} at the end. A server and its clients on one core, against two loops and "
        f"twice the clients on two; and two servers of one loop, a core each, with their clients on the same core "
        f"(near) or on the other (far). 16 handshakes at once a core, and requests of {SIZE:,} bytes each way, 64 at once on 16 connections a core. A second, medians of "
        f"{args.rounds} rounds in turn, with the least and the most.", "",
        "| | one core | two loops on two | two servers, near | two servers, far | two loops to one, target 1.8 "
        "| near to one | far to one |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for work in WORKS:
        cells = [cell(runs[work, setup], 0) for setup in SETUPS]
        cells += [cell(ratios(runs, work, setup, "one"), 2) for setup in SETUPS[1:]]
        lines.append(f"| {work} | {' | '.join(cells)} |")
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
    names = [(work, setup) for work in WORKS for setup in SETUPS]
    runs = {name: [] for name in names}
    for turn in range(args.rounds):
        at = turn % len(names)
        for work, setup in names[at:] + names[:at]:
            runs[work, setup].append(once(args, work, setup))
            print(f"round {turn + 1}: {work}, {setup}: {runs[work, setup][-1]:,.0f} a second", file=sys.stderr)
    text = report(args, runs)
    print(json.dumps({work: {setup: runs[work, setup] for setup in SETUPS} for work in WORKS}) if args.json else text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
