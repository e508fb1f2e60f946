#!/usr/bin/env python3
"""`make bench`: runs `leat bench` and the peers that are built, and writes what they said into the section
"leat bench" of docs/BENCHMARKS.md: machine, commands, figures, and beside each target whether it is
reached.

    bench/run.py LEAT [--peers DIR] [--write FILE] [--quick]

Each work runs ROUNDS times; shown is the run in the middle by time (for the small works, each of which
already takes the median of its rounds) and the spread of all. Figures that stand in the column "recorded"
were not taken in this run: they are published ones, or those of the reference machine.

SPDX-License-Identifier: MIT
"""
import argparse
import datetime
import glob
import json
import os
import platform
import re
import subprocess
import sys

BEGIN, END = "<!-- leat bench: begin -->", "<!-- leat bench: end -->"


def allocs(row):
    return row["allocs_per_op"]["all"] if row.get("allocs_per_op") else None


def median_ns(row, figure="median_ns"):
    return row.get(figure, row.get("ns_per_op"))


class Claim:
    """A row of issue 3's table: the work, the row of its report, what is recorded, the most allowed."""

    def __init__(self, what, args, row, recorded, ns=None, heap=None, extra=None,
                 least=None, figure="median_ns"):
        self.what, self.args, self.row, self.recorded = what, args, row, recorded
        self.ns, self.heap, self.extra, self.least, self.figure = ns, heap, extra, least, figure


CLAIMS = [
    Claim("1,200-byte message, one a hop", ["transfer"], 0,
          "24.37 → 22.14 allocations (swift-network); quicly 2.1 and 2,725 ns, 1,513 fused", heap=0),
    Claim("the same, 16 a hop", ["transfer", "--burst", "16"], 0,
          "quicly 1.3 and 1,752 ns, 981 fused", heap=0),
    Claim("500 KB transfer", ["transfer", "--total", "500000"], 0,
          "6,187.6 → 6,131.8 allocations (swift-network); picoquic 15.5 and 885 µs, quicly 56 and 650 µs",
          heap=0),
    Claim("the same, keys updated every 10,000 packets", ["transfer", "--total", "500000", "--key-update", "10000"], 0,
          "", heap=0, least=("key_updates", 1)),
    Claim("handshake, not verified", ["handshake", "-n", "2000"], 0,
          "1,947.4 → 1,941.5 allocations (swift-network); quicly 417", heap=420,
          extra=("over_tls_cpu", 0.10)),
    Claim("handshake, verified", ["handshake", "-n", "2000", "--verify"], 0,
          "quicly 2,181 allocations", heap=980, extra=("over_tls_cpu", 0.10)),
    Claim("handshake, resumed", ["handshake", "-n", "2000", "--resume"], 0, "150 allocations, GnuTLS alone",
          heap=170),
    Claim("stream, 10 at once", ["streams"], 0,
          "111.8 → 106.9 allocations (swift-network); picoquic 8 and 962 ns, quicly 10–12 and 1,053 ns",
          heap=0),
    Claim("stream, 1 at once", ["streams", "-c", "1", "-n", "100000"], 0,
          "picoquic 4,464 ns, quicly 3,497 ns", heap=0),
    Claim("task, from the owner", ["tasks"], 0, "4 → 2 allocations (swift-network)", ns=6, heap=0),
    Claim("task, posted from another thread in a burst", ["tasks"], 3, "libdispatch 142 to 200 ns, 1 to 2",
          ns=12, heap=0, figure="post_ns"),
    Claim("the same, until the owner has run it", ["tasks"], 3, "", heap=0, figure="through_ns"),
    Claim("a burst posted from another thread by one call", ["tasks"], 4, "", ns=12, heap=0, figure="post_ns"),
    Claim("the same, until the owner has run it", ["tasks"], 4, "", heap=0, figure="through_ns"),
    Claim("transport parameters, encode (client's)", ["tparams"], 0,
          "196 ns, 1 allocation (quic-go); picoquic 50 ns", ns=30, heap=0),
    Claim("transport parameters, encode (server's)", ["tparams"], 1, "picoquic 118 ns", ns=30, heap=0),
    Claim("transport parameters, decode (client's)", ["tparams"], 2, "picoquic 166 ns, quicly 85 ns", ns=60,
          heap=0),
    Claim("transport parameters, decode (server's)", ["tparams"], 3, "picoquic 229 ns, quicly 96 ns", ns=60,
          heap=0),
    Claim("TWCC: record a packet", ["twcc"], 0, "6.9 ns, 0 allocations (pion, M2); 9.2 ns", ns=3, heap=0),
    Claim("TWCC: the same and feedback every 100, as bytes, a packet", ["twcc"], 1,
          "34.4 ns before serialising, 47 to 61 ns as bytes, 0.25 to 0.56 allocations (pion)", ns=6, heap=0),
    Claim("TWCC: parse feedback on 100, a status", ["twcc"], 2, "24 to 30 ns, 1.1 to 1.2 allocations (pion)", ns=2.5,
          heap=0),
    Claim("TWCC: remember a sent packet", ["twcc"], 3, "226 ns, 2 allocations (pion)", ns=5, heap=0),
    Claim("TWCC: the same and results every 100, a packet", ["twcc"], 4, "319 ns (pion)", ns=15, heap=0),
]
OTHERS = [["buffers"], ["queue"], ["udpip"], ["socket"], ["readfile"], ["idle"]]


def run(leat, args):
    done = subprocess.run([leat, "bench", *args, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


class Runs:
    """Reports of the works, each command once for all claims that are made of it."""

    def __init__(self, leat, rounds, quick):
        self.leat, self.rounds, self.quick, self.reports = leat, rounds, quick, {}

    def of(self, args):
        key = tuple(args)
        if key not in self.reports:
            print("leat bench", *args, file=sys.stderr, flush=True)
            more = ["-n", "2000"] if self.quick and "-n" not in args else []
            self.reports[key] = [run(self.leat, [*args, *more]) for _ in range(self.rounds)]
        return self.reports[key]

    def row(self, args, index, figure="median_ns"):
        """The row of the run in the middle, and the least and the most of its time."""
        rows = [report["results"][index] for report in self.of(args)]
        times = sorted(rows, key=lambda row: median_ns(row, figure) or 0)  # some tell bytes alone
        return times[len(times) // 2], median_ns(times[0], figure), median_ns(times[-1], figure)


def time_text(ns):
    if ns is None:
        return ""
    for unit, worth in (("ns", 1), ("µs", 1e3), ("ms", 1e6)):
        if ns / worth < 10000 or unit == "ms":
            value = ns / worth
            return f"{value:.1f} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
    return ""


def number(value):
    if value is None:
        return "not counted"
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}"


def verdict(claim, row):
    """What of the claim's targets is not reached."""
    missed = []
    if claim.ns is not None and median_ns(row, claim.figure) > claim.ns:
        missed.append(f"over {claim.ns} ns")
    if claim.heap is not None and (allocs(row) is None or allocs(row) > claim.heap):
        missed.append(f"over {claim.heap} allocations")
    if claim.extra and row[claim.extra[0]] > claim.extra[1]:
        missed.append(f"{row[claim.extra[0]] * 100:.0f} % over the TLS library's own, target "
                      f"{claim.extra[1] * 100:.0f} %")
    if claim.least and row[claim.least[0]] < claim.least[1]:
        missed.append(f"{claim.least[0]} {row[claim.least[0]]}")
    return "no: " + ", ".join(missed) if missed else "yes"


def target(claim):
    parts = []
    if claim.heap is not None:
        parts.append(f"{claim.heap} allocations")
    if claim.ns is not None:
        parts.append(f"{claim.ns} ns")
    if claim.extra:
        parts.append(f"{claim.extra[1] * 100:.0f} % over the TLS library's own")
    if claim.least:
        parts.append(f"{claim.least[0]} {claim.least[1]} or more")
    return ", ".join(parts)


def claims_table(runs):
    lines = ["| work | recorded elsewhere | target | leat: time (least to most) | processor time | allocations: all "
             "(leat's own) | reached |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for claim in CLAIMS:
        row, least, most = runs.row(claim.args, claim.row, claim.figure)
        own = row["allocs_per_op"]["leat"] if row.get("allocs_per_op") else None
        lines.append(f"| {claim.what} | {claim.recorded} | {target(claim)} | {time_text(median_ns(row, claim.figure))} "
                     f"({time_text(least)} to {time_text(most)}) | {time_text(row['cpu_ns_per_op'])} | {number(allocs(row))} ({number(own)}) | "
                     f"{verdict(claim, row)} |")
    return lines


def buffers_table(runs):
    rows = [runs.row(["buffers"], i)[0] for i in range(len(runs.of(["buffers"])[0]["results"]))]
    others = ["glibc_ns", "jemalloc_ns", "mimalloc_ns"]
    lines = ["| buffer | leat | its best round | in the packet's way | slabs of 8 KiB | glibc | jemalloc | mimalloc | "
             "ahead of all | under 5 ns |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        there = [row[other] for other in others if other in row]
        cells = [f"{row[key]:.1f}" if key in row else "" for key in ("best_ns", "inline_ns", "slab8_ns", *others)]
        ahead = "yes" if all(row["median_ns"] < other for other in there) else "no"
        size = row["name"].split(",")[0]
        small = size.isdigit() or (size.endswith("k") and int(size[:-1]) <= 32)  # the target is for these
        under = ("yes" if row["median_ns"] < 5 else "no") if small else ""
        lines.append(f"| {row['name']} | {row['median_ns']:.1f} | {' | '.join(cells)} | {ahead} | {under} |")
    return lines


def plain_table(runs, args):
    first = runs.of(args)[0]
    lines = [f"`leat bench {' '.join(args)}`:", ""]
    if "operations" in first["results"][0]:
        lines += [f"| {first['work']} | time a {first['unit']} | a second | allocations |", "| --- | --- | --- | --- |"]
    else:
        lines += [f"| {first['work']} | |", "| --- | --- |"]
    for i in range(len(first["results"])):
        row, _, _ = runs.row(args, i)
        if "operations" in row:
            lines.append(f"| {row['name']} | {time_text(median_ns(row))} | {1e9 / median_ns(row):,.0f} | "
                         f"{number(allocs(row))} |")
        else:
            figures = ", ".join(f"{k} {v:,.0f}" for k, v in row.items() if k != "name")
            lines.append(f"| {row['name']} | {figures} |")
    return lines


def machine():
    model = "?"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        found = re.search(r"model name\s*:\s*(.*)", file.read())
        model = found.group(1) if found else model
    system = "?"
    with open("/etc/os-release", encoding="utf-8") as file:
        found = re.search(r'PRETTY_NAME="(.*)"', file.read())
        system = found.group(1) if found else system
    return f"{os.cpu_count()} cores, {model}; {system}, Linux {platform.release()}"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def packages():
    wanted = ["libgnutls30", "libnettle8", "libipsec-mb1", "libjemalloc2", "libmimalloc2.0", "libc6"]
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}; ", *wanted],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip("; ")


def peers_table(folder):
    """Each peer prints JSON lines: peer, version, work, name, ns_per_op, allocs_per_op (or null)."""
    lines = []
    for program in sorted(glob.glob(os.path.join(folder, "peer_*"))) if folder else ():
        print(os.path.basename(program), file=sys.stderr, flush=True)
        done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            lines.append(f"| {os.path.basename(program)} | failed with {done.returncode} | | | | |")
            continue
        for line in done.stdout.splitlines():
            row = json.loads(line)
            lines.append(f"| {row['peer']} {row['version']} | {row['work']} | {row['name']} | "
                         f"{time_text(row['ns_per_op'])} | {time_text(row['cpu_ns_per_op'])} | "
                         f"{number(row['allocs_per_op'])} |")
    if lines:
        lines = ["| peer | work | what | time | processor time | allocations |",
                 "| --- | --- | --- | --- | --- | --- |", *lines]
    return lines or ["None was built (`make bench-peers`)."]


def section(runs, folder, before):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True,
                            check=False).stdout.strip()
    lines = [BEGIN, "## leat bench", "",
             f"Written by `make bench` on {datetime.date.today()} at {commit or '?'}: {machine()}.",
             f"Load average before {before}, after {load()}: above 1 or 2 others were at work, and times are "
             "larger than the machine's own.",
             f"Versions: {packages()}.", "",
             f"Each row is the middle one of {runs.rounds} runs of `leat bench WORK`; allocations are heap calls "
             "of the whole process that gave out memory, in brackets those that leat itself made.", "",
             *claims_table(runs), "", "### Buffers", "",
             "A take and a release, ns, each the median of its rounds.", "", *buffers_table(runs), "",
             "### The other works", ""]
    for args in OTHERS[1:]:
        lines += [*plain_table(runs, args), ""]
    lines += ["### Peers in the same run", "", *peers_table(folder), "", END]
    return "\n".join(lines)


def write(path, text):
    old = f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            old = file.read()
    if BEGIN not in old:
        old += f"\n{BEGIN}\n{END}\n"
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + text + tail)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("leat")
    parser.add_argument("--peers", help="folder of the peers' programs")
    parser.add_argument("--write", help="the file whose section is replaced (default: print it)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="once, and little: to see that it works")
    given = parser.parse_args()
    before = load()
    runs = Runs(given.leat, 1 if given.quick else given.rounds, given.quick)
    text = section(runs, given.peers, before)
    if given.write:
        write(given.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
