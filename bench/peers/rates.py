#!/usr/bin/env python3
"""rates.py: how many requests and handshakes a second a server answers: leat's and Debian's ngtcp2
(gtlsserver), each asked by the same clients.

    bench/peers/rates.py [--rounds N] [--requests N] [--seconds S] [--leat PATH] [--doc FILE]

Requests: HTTP/3, a file of 1,024 bytes, on one connection, as many at once as the server allows, asked for by
gtlsclient; leat's server opens the file for each, gtlsserver keeps it mapped. Handshakes: `leat perf client
--handshakes --alpn h3`, 16 at once, certificate not checked. Server and client have a core each; all
combinations run once a round, in an order that rotates, and ratios are taken within a round. A rate is bound
by the slower of the two processes, so what a request or a handshake costs the server in CPU time stands
beside it: the kernel's count, from before the client starts until it has ended.

--doc replaces the section of that file which this program wrote before, or appends it.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import ngtcp2
import record

MARK = "bench/peers/rates.py"
SIZE = 1024
AT_ONCE = 16
TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Rates(ngtcp2.Bench):
    def __init__(self, args):
        super().__init__(argparse.Namespace(leat=args.leat, megabytes=1))
        self.requests, self.seconds = args.requests, args.seconds
        with open(os.path.join(self.www, "small"), "wb") as f:
            f.write(os.urandom(SIZE))

    def wait(self, command):
        """Runs a client to its end; the time it took and what it printed."""
        began = time.monotonic()
        core = {self.cores[1 % len(self.cores)]}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=ngtcp2.PATIENCE, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, core))
        if done.returncode != 0:
            sys.exit(f"rates.py: {command[0]} {command[1]} failed with {done.returncode}")
        return time.monotonic() - began, done.stdout

    def by_gtlsclient(self, port):
        command = [*self.ngtcp2_client(port)[:-1], f"https://localhost:{port}/small",
                   f"--nstreams={self.requests}"]
        return self.requests, self.wait(command)[0]

    def handshakes(self, port):
        _, out = self.wait([self.leat, "perf", "client", f"127.0.0.1:{port}", "--handshakes", "--alpn", "h3", "-P",
                            str(AT_ONCE), "-t", str(self.seconds), "-i", "0", "--json"])
        end = json.loads(out)["end"]["sum"]
        return end["operations"], end["seconds"]

    def run(self, server_command, work):
        """Of one work with one server: operations a second, and server's CPU microseconds of each."""
        with open(self.path("log"), "wb") as err:
            server = self.start(server_command, 0, err)
            port = self.port_of(server)
            before = cpu_of(server)
            done, seconds = work(port)
            cpu = cpu_of(server) - before
            server.send_signal(signal.SIGTERM)
            server.wait(ngtcp2.PATIENCE)
        return done / seconds, cpu * 1e6 / done


def report(args, works, runs):
    lines = [
        "## Requests and handshakes a second: leat's server and ngtcp2's", "",
        f"`{MARK} --rounds {args.rounds} --requests {args.requests} --seconds {args.seconds}`, {record.now()}, on "
        f"{record.machine()}; load average {os.getloadavg()[0]:.1f} at the end. "
        f"{ngtcp2.first_line(args.leat, '--version')}; {ngtcp2.first_line('dpkg-query', '-W', 'ngtcp2-server')}. "
        f"Requests are for {SIZE:,} bytes over HTTP/3 on one connection, handshakes {AT_ONCE} at once; leat's "
        f"server opens the file for each request, gtlsserver keeps it mapped; medians of "
        f"{args.rounds} rounds in rotating order, with the least and the most. What the client starts and ends "
        "with is in the time of requests.", "",
        "| asked by | server | a second | CPU µs of the server each |", "| --- | --- | --- | --- |"]
    for work in works:
        for server in ("leat", "ngtcp2"):
            rates, cpus = zip(*runs[work, server])
            lines.append(f"| {work} | {server} | {statistics.median(rates):,.0f} ({min(rates):,.0f} to "
                         f"{max(rates):,.0f}) | {statistics.median(cpus):.1f} ({min(cpus):.1f} to "
                         f"{max(cpus):.1f}) |")
    lines.append("")
    for work in works:
        both = list(zip(runs[work, "leat"], runs[work, "ngtcp2"]))
        rate = [a[0] / b[0] for a, b in both]
        cpu = [a[1] / b[1] for a, b in both]
        lines.append(f"- {work}: leat's server answers {statistics.median(rate):.2f} times as many a second (from "
                     f"{min(rate):.2f} to {max(rate):.2f}), with {statistics.median(cpu):.2f} times the CPU time "
                     "each.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--leat", default=os.path.join(record.ROOT, "build/release/cli/leat"))
    parser.add_argument("--doc")
    args = parser.parse_args()
    bench = Rates(args)
    try:
        works = {"requests, gtlsclient": bench.by_gtlsclient,
                 "handshakes, leat perf client": bench.handshakes}
        servers = {"leat": bench.leat_server, "ngtcp2": bench.ngtcp2_server}
        names = [(work, server) for work in works for server in servers]
        runs = {name: [] for name in names}
        for turn in range(args.rounds):
            at = turn % len(names)
            for work, server in names[at:] + names[:at]:
                runs[work, server].append(bench.run(servers[server](), works[work]))
                rate, cpu = runs[work, server][-1]
                print(f"round {turn + 1}: {work}, {server}'s server: {rate:,.0f} a second, CPU {cpu:.1f} µs",
                      file=sys.stderr)
        text = report(args, works, runs)
    finally:
        bench.close()
    print(text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
