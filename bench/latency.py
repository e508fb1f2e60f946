#!/usr/bin/env python3
"""bench/latency.py: how long a small request takes over loopback at half of what the server can answer,
beside a bare UDP echo of the same size at the same rate.

    bench/latency.py [--rounds N] [--seconds S] [--bytes N] [--leat PATH] [--echo PATH] [--doc FILE]

Saturation is what `leat perf client --requests` reaches with 64 at once, a second each round; half the
median of it is the rate. Each round then runs leat and the echo for some seconds each, in turn. Server
and client are two processes with a core each. Both clients time a request from the moment at which it
is due, so that one that is slow does not hide what waits behind it.

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
AT_ONCE = 64
QUANTILES = ("p50_us", "p99_us", "p99_9_us")


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


def requests(args, server, *options):
    return client(args.leat, "perf", "client", server.address, "--requests", "--up", str(args.bytes),
                  "--down", str(args.bytes), "-i", "0", "--json", *options)["end"]


def measure(args):
    leat = Server([args.leat, "perf", "server", "--listen", "127.0.0.1:0"], r"listening on (\S+)", "stderr")
    echo = Server([args.echo, "server", "127.0.0.1"], r"(\d+)", "stdout")
    most = [requests(args, leat, "-P", str(AT_ONCE), "-t", "1")["sum"]["ops_per_second"]
            for _ in range(args.rounds)]
    rate = int(statistics.median(most) / 2)
    runs = {"leat": [], "UDP echo": []}
    for turn in range(args.rounds):
        for name in list(runs)[::-1 if turn % 2 else 1]:
            if name == "leat":
                end = requests(args, leat, "--rate", str(rate), "-t", str(args.seconds))
                runs[name].append({**end, "done": end["sum"]["operations"]})
            else:
                run = client(args.echo, "client", "127.0.0.1", echo.address, str(args.bytes), str(rate),
                             str(args.seconds))
                runs[name].append({**run, "done": run["echoed"]})
            print(f"round {turn + 1}: {name}: {runs[name][-1]}", file=sys.stderr)
    leat.stop()
    echo.stop()
    return most, rate, runs


def report(args, most, rate, runs):
    lines = [
        f"## A request of {args.bytes} bytes at half of saturation", "",
        f"`bench/latency.py --rounds {args.rounds} --seconds {args.seconds}`, {record.now()}, on "
        f"{record.machine()}; load average {os.getloadavg()[0]:.1f} at the end. Over loopback, two processes, "
        f"{args.bytes} bytes each way, a stream a request; with {AT_ONCE} at once the server answered "
        f"{statistics.median(most):,.0f} a second ({min(most):,.0f} to {max(most):,.0f}), so {rate:,} were asked "
        f"for. Microseconds from the moment a request is due, medians of {args.rounds} rounds in turn, with "
        "the least and the most.", "",
        "| | p50 | p99 | p99.9 | answered a round |", "| --- | --- | --- | --- | --- |"]
    for name, rows in runs.items():
        cells = []
        for quantile in QUANTILES:
            values = sorted(row[quantile] for row in rows)
            cells.append(f"{statistics.median(values):,.0f} ({values[0]:,.0f} to {values[-1]:,.0f})")
        done = statistics.median(row["done"] for row in rows)
        lines.append(f"| {name} | {' | '.join(cells)} | {done:,.0f} |")
    over = [(a["p99_9_us"] - b["p99_9_us"]) / 1000 for a, b in zip(runs["leat"], runs["UDP echo"])]
    lines += ["", f"leat's p99.9 over the echo's, round by round: median {statistics.median(over):+.2f} ms (from "
              f"{min(over):+.2f} to {max(over):+.2f}); the target is 1 ms."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--leat", default=os.path.join(ROOT, "build/release/cli/leat"))
    parser.add_argument("--echo", default=os.path.join(ROOT, "build/release/bench/udp_echo"))
    parser.add_argument("--doc")
    args = parser.parse_args()
    text = report(args, *measure(args))
    print(text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
