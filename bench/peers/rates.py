#!/usr/bin/env python3
"""rates.py: how many requests and handshakes a second leat and its peers reach: Debian's ngtcp2, and where they are
built that of its backports and quic-go. Their servers are asked by the same clients, and each server by its own.

    bench/peers/rates.py [--rounds N] [--requests N] [--seconds S] [--leat PATH] [--peers DIR] [--json] [--doc FILE]

Requests: HTTP/3, a file of 1,024 bytes, on one connection, as many at once as client and server allow; leat's
server keeps the file in memory for a second at a time, gtlsserver keeps it mapped. Time is from the client's
start to its exit. Handshakes: 16 at once, certificate not checked, by `leat perf client --handshakes --alpn h3`
and by ngtcp2_handshakes (bench/peers), since gtlsclient makes one (of the installed ngtcp2 alone: that of the backports
answers leat's client). Server and client have a core each; all
combinations run once a round, in an order that rotates, and ratios are taken within a round. A rate is bound by
the slower of the two processes, so what a request or a handshake costs either in CPU time stands beside it: the
kernel's count, of the server from before the client starts until it has ended.

--doc replaces the section of that file which this program wrote before, or appends it.

SPDX-License-Identifier: MIT
"""
import argparse
import functools
import json
import os
import resource
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


class Rates(ngtcp2.Bench):
    def __init__(self, args):
        super().__init__(argparse.Namespace(leat=args.leat, megabytes=1, peers=args.peers))
        self.requests, self.seconds = args.requests, args.seconds
        self.client = os.path.join(args.peers, "ngtcp2_handshakes")
        with open(os.path.join(self.www, "small"), "wb") as f:
            f.write(os.urandom(SIZE))

    def wait(self, command):
        """Runs a client to its end: the time it took, its CPU seconds and what it printed."""
        core = {self.cores[1 % len(self.cores)]}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=ngtcp2.PATIENCE, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, core))
        seconds = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(f"rates.py: {command[0]} {command[1]} failed with {done.returncode}")
        return (seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout)

    def requests_of_ngtcp2(self, port, root=None):
        command = [*self.ngtcp2_client(port, root)[:-1], f"https://localhost:{port}/small",
                   f"--nstreams={self.requests}"]
        return (self.requests, *self.wait(command)[:2])

    def requests_of_leat(self, port):
        seconds, cpu, out = self.wait([self.leat, "perf", "client", f"127.0.0.1:{port}", "--requests", "--path",
                                       "/small", "--count", str(self.requests), "-P", "1000", "-i", "0", "--json"])
        end = json.loads(out)["end"]["sum"]
        if (end["operations"], end["bytes"]) != (self.requests, self.requests * SIZE):
            sys.exit(f"rates.py: not all was answered: {end}")
        return self.requests, seconds, cpu

    def handshakes_of_leat(self, port):
        _, cpu, out = self.wait([self.leat, "perf", "client", f"127.0.0.1:{port}", "--handshakes", "--alpn", "h3",
                                 "-P", str(AT_ONCE), "-t", str(self.seconds), "-i", "0", "--json"])
        end = json.loads(out)["end"]["sum"]
        return end["operations"], end["seconds"], cpu

    def handshakes_of_ngtcp2(self, port):
        _, cpu, out = self.wait([self.client, "127.0.0.1", str(port), str(AT_ONCE), str(self.seconds)])
        end = json.loads(out)
        return end["operations"], end["seconds"], cpu

    def requests_of_quicgo(self, port):
        return (self.requests, *self.wait([self.quicgo, "requests", str(port), "/small", str(self.requests),
                                           str(100)])[:2])  # as many as its server allows at once

    def handshakes_of_quicgo(self, port):
        _, cpu, out = self.wait([self.quicgo, "handshakes", str(port), str(AT_ONCE), str(self.seconds)])
        end = json.loads(out)
        return end["operations"], end["seconds"], cpu

    def works(self):
        """By name: clients, and which client asks which server."""
        requests = {"leat": self.requests_of_leat}
        for name, root in self.ngtcp2.items():
            requests[name] = functools.partial(self.requests_of_ngtcp2, root=root)
        handshakes = {"leat": self.handshakes_of_leat, "ngtcp2": self.handshakes_of_ngtcp2}
        if "quic-go" in self.ends():
            requests["quic-go"] = self.requests_of_quicgo
            handshakes["quic-go"] = self.handshakes_of_quicgo
        names = []
        for work, clients in (("requests", requests), ("handshakes", handshakes)):
            for server in self.ends():
                # leat's client asks all, that of the installed ngtcp2 leat's too, the others their own.
                names += [(work, client, server) for client in clients
                          if client in ("leat", server) or (client, server) == ("ngtcp2", "leat")]
        return {"requests": requests, "handshakes": handshakes}, names

    def run(self, server_command, work):
        """Of one work with one server: operations a second, and CPU microseconds of each at server and client."""
        with open(self.path("log"), "wb") as err:
            server = self.start(server_command, 0, err)
            port = self.port_of(server)
            before = record.cpu_of(server)
            done, seconds, client_cpu = work(port)
            cpu = record.cpu_of(server) - before
            server.send_signal(signal.SIGTERM)
            server.wait(ngtcp2.PATIENCE)
        return done / seconds, cpu * 1e6 / done, client_cpu * 1e6 / done


def ratio(over, under, part):
    each = [a[part] / b[part] for a, b in zip(over, under)]
    return {"median": statistics.median(each), "least": min(each), "most": max(each)}


def result(works, runs):
    """What --json prints: each run, and leat against its peers round by round."""
    rows = [{"work": work, "client": client, "server": server, "runs": [
        {"a_second": rate, "server_us": cpu, "client_us": client_cpu} for rate, cpu, client_cpu in runs[key]]}
        for key in runs for work, client, server in [key]]
    ratios = []
    for work in works:
        for peer in dict.fromkeys(server for at, _, server in runs if at == work and server != "leat"):
            for name, over, under in [("servers, asked by leat", ("leat", "leat"), ("leat", peer)),
                                      (f"servers, asked by {peer}", (peer, "leat"), (peer, peer)),
                                      ("pairs", ("leat", "leat"), (peer, peer))]:
                if (work, *over) not in runs or (work, *under) not in runs:
                    continue
                a, b = runs[(work, *over)], runs[(work, *under)]
                ratios.append({"work": work, "peer": peer, "of": name, "rate": ratio(a, b, 0),
                               "server_cpu": ratio(a, b, 1), "client_cpu": ratio(a, b, 2)})
    return {"runs": rows, "ratios": ratios}


def report(args, bench, found):
    lines = [
        "## Requests and handshakes a second: leat and its peers", "",
        f"`{MARK} --rounds {args.rounds} --requests {args.requests} --seconds {args.seconds}`, {record.now()}, on "
        f"{record.machine()}; load average {os.getloadavg()[0]:.1f} at the end. "
        f"{'; '.join(bench.versions)}. "
        f"Requests are for {SIZE:,} bytes over HTTP/3 on one connection, handshakes {AT_ONCE} at once; leat "
        f"and ngtcp2 on GnuTLS, quic-go on Go's TLS, AES-128-GCM and X25519; medians of {args.rounds} rounds in rotating order, with the least and the "
        "most. What the client starts and ends with is in the time of requests.", "",
        "| client | server | a second | CPU µs of the server each | of the client |",
        "| --- | --- | --- | --- | --- |"]
    for row in found["runs"]:
        cells = []
        for name, digits in (("a_second", 0), ("server_us", 1), ("client_us", 1)):
            values = [run[name] for run in row["runs"]]
            cells.append(f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to "
                         f"{max(values):,.{digits}f})")
        lines.append(f"| {row['work']}, {row['client']} | {row['server']} | {' | '.join(cells)} |")
    lines.append("")
    for row in found["ratios"]:
        rate = row["rate"]
        lines.append(f"- {row['work']}, {row['of']}: leat {rate['median']:.2f} times as many a second as {row['peer']} (from "
                     f"{rate['least']:.2f} to {rate['most']:.2f}), with {row['server_cpu']['median']:.2f} times the "
                     f"server's CPU time each and {row['client_cpu']['median']:.2f} times the client's.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--leat", default=os.path.join(record.ROOT, "build/release/cli/leat"))
    parser.add_argument("--peers", default=ngtcp2.PEERS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--doc")
    args = parser.parse_args()
    bench = Rates(args)
    try:
        works, names = bench.works()
        servers = {name: server for name, (server, _) in bench.ends().items()}
        runs = {name: [] for name in names}
        for turn in range(args.rounds):
            at = turn * 3 % len(names)  # no pair always runs behind the same one
            for work, client, server in names[at:] + names[:at]:
                runs[work, client, server].append(bench.run(servers[server](), works[work][client]))
                rate, cpu, client_cpu = runs[work, client, server][-1]
                print(f"round {turn + 1}: {work}, {client} -> {server}: {rate:,.0f} a second, CPU {cpu:.1f} and "
                      f"{client_cpu:.1f} µs", file=sys.stderr)
        found = result(works, runs)
        text = report(args, bench, found)
    finally:
        bench.close()
    print(json.dumps(found) if args.json else text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
