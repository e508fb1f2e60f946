#!/usr/bin/env python3
"""bench/latency.py: how long a small request takes over loopback at half of what the server can answer,
beside a bare UDP echo of the same size at the same rate.

    bench/latency.py [--rounds N] [--turns N] [--slice SECONDS] [--bytes N] [--busy-poll MICROSECONDS]
                     [--leat PATH] [--echo PATH] [--doc FILE]

Requests come one by one, each at a time of its own, and both clients time a request from the moment at
which it is due: one that is slow does not hide what waits behind it. Server and client are two processes
with a core each.

What can be answered is found with such requests too, for many at once cost less each: the rate is raised
step by step until the answers no longer follow it. A round begins with that, since a machine that others
use changes its speed, and goes on at half of it: slices of leat, of leat with busy polling at both ends
and of the echo, each a fraction of a second, in rotating order, so that whatever holds the machine up
falls upon all of them alike. A round's figure is the median of its slices'; leat is compared with the
echo turn by turn.

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

ROOT = record.ROOT
MARK = "bench/latency.py"
QUANTILES = ("p50_us", "p99_us", "p99_9_us")
RATE_FIRST = 4000  # where the first search begins
STEP = 1.15        # what the rate is raised by, and the error that saturation has
FOLLOWS = 0.97     # answers to requests, below which the answers do not follow
TRIES = 3          # of a rate before it counts as too high: what holds the machine up is not the rate


def pinned(core):
    cores = sorted(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {cores[core % len(cores)]})


class Server:
    def __init__(self, command, says, stream):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=pinned(0))
        line = getattr(self.process, stream).readline()
        found = re.search(says, line)
        if not found:
            sys.exit(f"latency.py: {command[0]} does not start: {line}")
        self.address = found.group(1)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()


def client(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=pinned(1))
    return json.loads(done.stdout)


class Bench:
    """The servers, and one slice of each kind: a call with the rate that returns its quantiles and its share,
    the answers to what was asked for."""

    def __init__(self, args):
        self.args = args
        busy = ["--busy-poll", str(args.busy_poll)]
        self.servers = {name: Server([args.leat, "perf", "server", "--listen", "127.0.0.1:0", *options],
                                     r"listening on (\S+)", "stderr")
                        for name, options in (("leat", []), ("leat, busy polling", busy))}
        self.servers["UDP echo"] = Server([args.echo, "server", "127.0.0.1"], r"(\d+)", "stdout")
        self.kinds = {"leat": lambda rate: self.leat("leat", rate, []),
                      "leat, busy polling": lambda rate: self.leat("leat, busy polling", rate, busy),
                      "UDP echo": self.echo}

    def leat(self, name, rate, options):
        args = self.args
        end = client(args.leat, "perf", "client", self.servers[name].address, "--requests", "--up", str(args.bytes),
                     "--down", str(args.bytes), "-i", "0", "--rate", str(rate), "-t", str(args.slice), "--json",
                     *options)["end"]
        return {**{q: end[q] for q in QUANTILES}, "share": end["sum"]["operations"] / end["sum"]["seconds"] / rate}

    def echo(self, rate):
        args = self.args
        end = client(args.echo, "client", "127.0.0.1", self.servers["UDP echo"].address, str(args.bytes), str(rate),
                     str(args.slice))
        return {**{q: end[q] for q in QUANTILES}, "share": end["echoed"] / (rate * args.slice)}

    def follows(self, rate):
        return any(self.kinds["leat"](rate)["share"] >= FOLLOWS for _ in range(TRIES))

    def saturation(self, rate):
        """The highest rate that the answers follow, from a first guess, up to a step."""
        while rate > 1 and not self.follows(int(rate)):
            rate /= STEP
        while self.follows(int(rate * STEP)):
            rate *= STEP
        return rate

    def round(self, first):
        most = self.saturation(first)
        names = list(self.kinds)
        slices = {name: [] for name in names}
        for turn in range(self.args.turns):
            at = turn % len(names)
            for name in names[at:] + names[:at]:
                slices[name].append(self.kinds[name](int(most / 2)))
        return most, slices

    def close(self):
        for server in self.servers.values():
            server.stop()


def cell(values, digits=0, sign=""):
    middle, least, most = (f"{v:{sign},.{digits}f}" for v in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} to {most})"


def medians(rounds, name, what):
    return [statistics.median(each[what] for each in slices[name]) for _, slices in rounds]


def over_echo(rounds, name, what):
    """Milliseconds, turn by turn; of each round the median."""
    return [statistics.median((a[what] - b[what]) / 1000 for a, b in zip(slices[name], slices["UDP echo"]))
            for _, slices in rounds]


def report(args, rounds):
    most = [saturation for saturation, _ in rounds]
    lines = [
        f"## A request of {args.bytes:,} bytes at half of saturation", "",
        f"`bench/latency.py --rounds {args.rounds} --turns {args.turns} --slice {args.slice} --busy-poll "
        f"{args.busy_poll}`, {record.now()}, on {record.machine()}; load average {os.getloadavg()[0]:.1f} at the "
        f"end. Over loopback, two processes with a core each, {args.bytes:,} bytes each way, a stream a request. The answers "
        f"followed the requests up to {cell(most)} a second, looked for anew in each round; half as many were asked for. "
        f"Microseconds from the moment a request is due: a round's figure is the median of its {args.turns} slices of "
        f"{args.slice} s, in turn with the others'; medians of {args.rounds} rounds, with the least and the most.", "",
        "| | p50 | p99 | p99.9 | answered, to asked |", "| --- | --- | --- | --- | --- |"]
    names = list(rounds[0][1])
    for name in names:
        cells = [cell(medians(rounds, name, quantile)) for quantile in QUANTILES]
        lines.append(f"| {name} | {' | '.join(cells)} | {cell(medians(rounds, name, 'share'), 2)} |")
    lines.append("")
    for name in names[:-1]:
        parts = [f"{label} {cell(over_echo(rounds, name, quantile), 3, '+')}"
                 for label, quantile in zip(("p50", "p99", "p99.9"), QUANTILES)]
        lines.append(f"- {name}, over the echo turn by turn, ms: {', '.join(parts)}; the target is 1 ms at p99.9.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turns", type=int, default=9, help="slices of each kind in a round")
    parser.add_argument("--slice", type=float, default=0.25)
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--busy-poll", type=int, default=100)
    parser.add_argument("--leat", default=os.path.join(ROOT, "build/release/cli/leat"))
    parser.add_argument("--echo", default=os.path.join(ROOT, "build/release/bench/udp_echo"))
    parser.add_argument("--doc")
    args = parser.parse_args()
    bench = Bench(args)
    rounds = []
    try:
        for number in range(args.rounds):
            rounds.append(bench.round(rounds[-1][0] / STEP**3 if rounds else RATE_FIRST))
            most, slices = rounds[-1]
            print(f"round {number + 1}: up to {most:,.0f} a second; p99.9 of each slice: " + "; ".join(
                f"{name} {' '.join(format(each['p99_9_us'], ',.0f') for each in rows)}"
                for name, rows in slices.items()), file=sys.stderr)
    finally:
        bench.close()
    text = report(args, rounds)
    print(text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
