#!/usr/bin/env python3
"""bench/limit/run.py: what packets cost beside what they cost at least: in memory, and in bulk from
one process to another over loopback.

    bench/limit/run.py [--rounds N] [--megabytes N] [--build DIR] [--doc FILE]

In memory `leat bench transfer` (one thread for both ends) stands beside `leat bench protect`: what
sealing, masking and opening the same datagrams takes alone. Over loopback:

- leat: `leat perf`, one stream, the server sends and updates its keys every KEY_UPDATE packets. Heap calls of both
  whole processes are counted by liballoccount.so, where it is built: after the first megabyte there is none.
- the limit: bench/limit/limit.c, a bare pair that seals and opens each datagram by leat's own door
  to packet protection, over UDP with GSO and GRO, and does nothing else.
- TLS: bench/limit/tls.c, TLS 1.3 over TCP by OpenSSL.

AES-128-GCM, datagrams of 1,452 bytes, a core for each process. All run once a round, in an order
that rotates, so that a busy neighbour hurts all alike; ratios are taken within a round. Rates are of
payload, CPU seconds the kernel's count for both processes.

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

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
import ngtcp2 as peers  # noqa: E402
import record  # noqa: E402

DATAGRAM = 1452
KEY_UPDATE = 100000
PATIENCE = 120


class Runs:
    def __init__(self, args):
        self.build, self.bytes = args.build, args.megabytes * 1000000
        counter = self.path("tools/liballoccount.so")
        self.counted = {**os.environ, "LD_PRELOAD": counter} if os.path.exists(counter) else None
        self.updates, self.heap = [], []
        self.cores = sorted(os.sched_getaffinity(0))

    def path(self, name):
        return os.path.join(self.build, name)

    def start(self, command, core, **pipes):
        core = {self.cores[core % len(self.cores)]}
        return subprocess.Popen(command, text=True,
                                preexec_fn=lambda: os.sched_setaffinity(0, core), **pipes)

    @staticmethod
    def ended(process):
        """Waits for the end; its CPU seconds."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime

    def leat(self):
        """Bytes a second, CPU seconds a byte."""
        leat, size = self.path("cli/leat"), ["--udp-payload", str(DATAGRAM)]
        server = self.start([leat, "perf", "server", "--listen", "127.0.0.1:0", "--json",
                             "--key-update", str(KEY_UPDATE), *size], 0,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.counted)
        try:
            for line in server.stderr:
                found = re.search(r"listening on \S*:(\d+)", line)
                if found:
                    break
            else:
                sys.exit("limit/run.py: leat perf server does not listen")
            client = self.start([leat, "perf", "client", f"127.0.0.1:{found.group(1)}", "--json",
                                 "--reverse", "--bytes", str(self.bytes), *size], 1,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.counted)
            out = client.stdout.read()
            cpu = self.ended(client)
            if client.returncode != 0:
                sys.exit(f"limit/run.py: leat perf client: {client.stderr.read()}")
        finally:
            server.send_signal(signal.SIGTERM)
            cpu_server = self.ended(server)
        end, sender = json.loads(out)["end"], json.loads(server.stdout.read())
        total = end["sum"]
        self.updates.append(total["key_updates"])
        self.heap += [at["steady_heap_calls"] for at in (end, sender) if "steady_heap_calls" in at]
        return total["bytes"] / total["seconds"], (cpu + cpu_server) / total["bytes"]

    def kept(self):
        """What leat did meanwhile besides: key updates, heap calls."""
        text = (f"leat's sender updated its keys every {KEY_UPDATE:,} packets, by itself: {min(self.updates)} to "
                f"{max(self.updates)} times a round.")
        if self.heap:
            text += (" Heap calls of the whole process from its first megabyte to its last, at either end, in all "
                     f"rounds: {sum(self.heap)}.")
        return text

    def program(self, name, *options):
        done = subprocess.run([self.path(name), "--bytes", str(self.bytes), *options],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            sys.exit(f"limit/run.py: {name}: {done.stderr}")
        row = json.loads(done.stdout)
        cpu = row["cpu_sender"] + row["cpu_receiver"]
        return row["bytes"] / row["seconds"], cpu / row["bytes"]

    def limit(self):
        return self.program("bench/limit/leat-limit", "--size", str(DATAGRAM))

    def bare(self):
        return self.program("bench/limit/leat-limit", "--size", str(DATAGRAM), "--no-crypto")

    def tls(self):
        return self.program("bench/limit/leat-limit-tls")

    def bench(self, *options):
        """Processor time an operation in ns, and packets an operation, of the last row."""
        done = subprocess.run([self.path("cli/leat"), "bench", *options, "--no-heap", "--json"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            sys.exit(f"limit/run.py: leat bench: {done.stderr}")
        row = json.loads(done.stdout)["results"][-1]
        return row["cpu_ns_per_op"], row.get("packets_per_op", 1)


def spread(values, digits=2):
    return (f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to "
            f"{max(values):.{digits}f})")


def ratios(runs, name, other, which):
    """Of leat to another, round by round: more is better."""
    pairs = zip(runs[name], runs[other])
    return [(a[0] / b[0]) if which == 0 else (b[1] / a[1]) for a, b in pairs]


# In memory: what is run, and whether it is told for a packet.
MEMORY = {
    "a message of 1,200 bytes, one a hop": (["transfer", "-n", "200000"], False),
    "the same, with IP and UDP headers": (["transfer", "-n", "200000"], False),
    "a message of 1,200 bytes, 16 a hop": (["transfer", "--burst", "16", "-n", "300000"], False),
    "a datagram of 1,252 bytes in bulk": (["transfer", "--total", "500000", "-n", "500",
                                           "--udp-payload", "1252"], True),
    "the same, sealed and opened alone": (["protect", "--size", "1252"], True),
}
BULK, ALONE = list(MEMORY)[-2:]


def in_memory(runs_of, name):
    options, packet = MEMORY[name]
    stack = [] if "headers" in name or "alone" in name else ["--stack", "quic"]
    ns, packets = runs_of.bench(*options, *stack)
    return ns / packets if packet else ns


def report_memory(runs, args):
    shares = [alone / bulk for alone, bulk in zip(runs[ALONE], runs[BULK])]
    return "\n".join([
        "## In memory, one thread for both ends", "",
        f"The same {args.rounds} rounds. AES-128-GCM; processor time of both ends in ns, medians with "
        "the least and the most; QUIC alone on the link where nothing else is said.", "",
        "| | ns |", "| --- | --- |",
        *[f"| {name} | {spread(values, 0)} |" for name, values in runs.items()], "",
        f"Bulk reaches {spread([100 * share for share in shares], 0)} % of what its protection "
        "alone would, round by round."])


def report(names, runs, runs_of, args):
    leat = os.path.join(args.build, "cli/leat")
    openssl = peers.first_line("openssl", "version")
    lines = [
        "## Bulk over loopback, two processes: leat, the limit, and TLS over TCP", "",
        f"`bench/limit/run.py --rounds {args.rounds} --megabytes {args.megabytes}`, "
        f"{record.now()}, on {record.machine()}; load average "
        f"{os.getloadavg()[0]:.1f} at the end{peers.noise()}. {peers.first_line(leat, '--version')}; "
        f"{openssl}. AES-128-GCM, datagrams of {DATAGRAM:,} bytes, one stream, a core for each "
        f"process; medians of {args.rounds} rounds in rotating order, with the least and the most.",
        "", "| | Gbit/s | Gbit a CPU second |", "| --- | --- | --- |"]
    for name, text in names.items():
        rate = [run[0] * 8 / 1e9 for run in runs[name]]
        per_cpu = [8 / run[1] / 1e9 for run in runs[name]]
        lines.append(f"| {text} | {spread(rate)} | {spread(per_cpu)} |")
    lines += ["", "leat's share, round by round, of throughput and of throughput a CPU second: "
              f"of the limit {spread(ratios(runs, 'leat', 'limit', 0))} and "
              f"{spread(ratios(runs, 'leat', 'limit', 1))}; of TLS over TCP "
              f"{spread(ratios(runs, 'leat', 'tls', 0))} and "
              f"{spread(ratios(runs, 'leat', 'tls', 1))}.", "", runs_of.kept()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--doc")
    args = parser.parse_args()
    runs_of = Runs(args)
    names = {
        "leat": "leat perf",
        "limit": "the limit: a bare UDP pair that seals and opens",
        "bare": "the same pair without cryptography",
        "tls": "TLS 1.3 over TCP, OpenSSL",
    }
    runs = {name: [] for name in names}
    memory = {name: [] for name in MEMORY}
    order = list(names)
    for turn in range(args.rounds):
        at = turn % len(order)
        for name in order[at:] + order[:at]:
            runs[name].append(getattr(runs_of, name)())
            print(f"round {turn + 1}: {name}: {runs[name][-1][0] * 8 / 1e9:.2f} Gbit/s, "
                  f"{8 / runs[name][-1][1] / 1e9:.2f} a CPU second", file=sys.stderr)
        rows = list(MEMORY)
        at = turn % len(rows)
        for name in rows[at:] + rows[:at]:
            memory[name].append(in_memory(runs_of, name))
            print(f"round {turn + 1}: {name}: {memory[name][-1]:.0f} ns", file=sys.stderr)
    text = report(names, runs, runs_of, args) + "\n\n" + report_memory(memory, args)
    print(text)
    if args.doc:
        record.write(args.doc, "bench/limit/run.py", text)


if __name__ == "__main__":
    main()
