#!/usr/bin/env python3
"""ngtcp2.py: a file from one process to another over loopback, leat's pair against Debian's ngtcp2
(gtlsserver, gtlsclient), and each with the other; and against the pairs of the ngtcp2 of Debian's backports
(unpacked by backports.sh) and of quic-go, where they are built.

    bench/peers/ngtcp2.py [--rounds N] [--megabytes N] [--leat PATH] [--peers DIR] [--doc FILE]

All pairs run once a round, in an order that rotates, so that a busy neighbour or a warming machine
hurts all of them alike; ratios are taken within a round. Servers read the file from a RAM disk where
there is one, clients throw it away; server and client have a core each. Time is the client's, from
start to exit, with the handshake; CPU seconds are the kernel's count for both processes. Defaults of
both programs, but for quiet.

--doc replaces the section of that file which this program wrote before, or appends it.

SPDX-License-Identifier: MIT
"""
import argparse
import functools
import glob
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import record

ROOT = record.ROOT
MARK = "bench/peers/ngtcp2.py"
PATIENCE = 300


def program(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if path is None:
        sys.exit(f"ngtcp2.py: {name} is not installed: run 'make setup'")
    return path


def descriptors(pid):
    """What a process has open; it may close some while they are looked at."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            yield os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass


PEERS = os.path.join(ROOT, "build/release/bench/peers")


class Bench:
    def __init__(self, args):
        self.leat = args.leat
        self.quicgo = os.path.join(args.peers, "quicgo_http3")
        # Name: the folder that it is unpacked in, or None for the packages that are installed.
        self.ngtcp2 = {"ngtcp2": None}
        self.versions = [first_line(self.leat, "--version"), first_line("dpkg-query", "-W", "ngtcp2-server")]
        backports = os.path.join(args.peers, "backports")
        if os.path.isdir(backports):
            with open(os.path.join(backports, "versions"), encoding="ascii") as f:
                version = dict(line.split() for line in f)["ngtcp2-server"]
            self.ngtcp2[f"ngtcp2 {'.'.join(version.split('.')[:2])}"] = backports
            self.versions.append(f"ngtcp2-server {version}")
        if os.access(self.quicgo, os.X_OK):
            self.versions.append(first_line("dpkg-query", "-W", "golang-github-lucas-clemente-quic-go-dev"))
        self.bytes = args.megabytes * 1000000
        ram = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.dir = tempfile.mkdtemp(prefix="leat-bench.", dir=ram)
        self.cores = sorted(os.sched_getaffinity(0))
        self.www = os.path.join(self.dir, "www")
        os.mkdir(self.www)
        with open(os.path.join(self.www, "file"), "wb") as f:
            for _ in range(args.megabytes):
                f.write(os.urandom(1000000))
        self.key, self.cert = self.path("key.pem"), self.path("cert.pem")
        subprocess.run([program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.key, "-out",
                        self.cert, "-days", "2", "-subj", "/CN=localhost"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, command, core, log):
        core = {self.cores[core % len(self.cores)]}
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log,
                                preexec_fn=lambda: os.sched_setaffinity(0, core))

    def leat_server(self):
        return [self.leat, "serve", self.www, "--listen", "127.0.0.1:0", "--cert", self.cert,
                "--key", self.key]

    def leat_client(self, port):
        return [self.leat, "get", f"https://127.0.0.1:{port}/file", "--insecure", "-q", "-o",
                "/dev/null"]

    @staticmethod
    def ngtcp2_program(root, name):
        if root is None:
            return [program(name)]
        [path] = glob.glob(os.path.join(root, "usr", "*bin", name))
        [libs] = glob.glob(os.path.join(root, "usr", "lib", "*-linux-*"))
        return ["env", f"LD_LIBRARY_PATH={libs}", path]

    def ngtcp2_server(self, root=None):
        return [*self.ngtcp2_program(root, "gtlsserver"), "-q", "--no-quic-dump", "--no-http-dump", "-d", self.www,
                "127.0.0.1", "0", self.key, self.cert]

    def ngtcp2_client(self, port, root=None):
        return [*self.ngtcp2_program(root, "gtlsclient"), "-q", "--no-quic-dump", "--no-http-dump",
                "--exit-on-all-streams-close", "127.0.0.1", str(port),
                f"https://localhost:{port}/file"]

    def quicgo_server(self):
        return [self.quicgo, "server", self.www, self.cert, self.key]

    def quicgo_client(self, port):
        return [self.quicgo, "requests", str(port), "/file", "1", "1"]

    def ends(self):
        """Server and client of everyone's pair, by name."""
        found = {"leat": (self.leat_server, self.leat_client)}
        for name, root in self.ngtcp2.items():
            found[name] = (functools.partial(self.ngtcp2_server, root),
                           functools.partial(self.ngtcp2_client, root=root))
        if os.access(self.quicgo, os.X_OK):
            found["quic-go"] = (self.quicgo_server, self.quicgo_client)
        return found

    def port_of(self, server):
        """The UDP port that a process has bound."""
        deadline = time.monotonic() + PATIENCE
        while server.poll() is None and time.monotonic() < deadline:
            links = list(descriptors(server.pid))
            with open("/proc/net/udp") as f:
                for row in list(f)[1:]:
                    fields = row.split()
                    if f"socket:[{fields[9]}]" in links:
                        return int(fields[1].rsplit(":", 1)[1], 16)
            try:
                server.wait(0.02)
            except subprocess.TimeoutExpired:
                pass
        sys.exit("ngtcp2.py: the server does not listen")

    def cpu(self, process):
        """Waits for the end; its CPU seconds."""
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return usage.ru_utime + usage.ru_stime

    def once(self, server_command, client_command):
        """Seconds, and CPU seconds of server and client."""
        log = self.path("log")
        with open(log, "wb") as err:
            server = self.start(server_command, 0, err)
            port = self.port_of(server)
            began = time.monotonic()
            client = self.start(client_command(port), 1, err)
            client_cpu = self.cpu(client)
            seconds = time.monotonic() - began
            server.send_signal(signal.SIGTERM)
            return seconds, self.cpu(server), client_cpu

    def close(self):
        shutil.rmtree(self.dir)


def check_whole(bench):
    """gtlsclient exits with 0 whatever happens: see once that each server and each client of ngtcp2's moves
    the whole file (quic-go's client looks itself)."""
    got = bench.path("got")
    os.mkdir(got)
    target = os.path.join(got, "file")
    clients = [lambda port: bench.leat_client(port)[:-1] + [target]]
    clients += [lambda port, root=root: bench.ngtcp2_client(port, root) + [f"--download={got}"]
                for root in bench.ngtcp2.values()]
    for server, _ in bench.ends().values():
        for client in clients:
            bench.once(server(), client)
            if not os.path.exists(target) or os.path.getsize(target) != bench.bytes:
                with open(bench.path("log"), errors="replace") as f:
                    sys.exit(f"ngtcp2.py: the file did not arrive whole: {f.read()[-2000:]}")
            os.unlink(target)


def first_line(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip().splitlines()[0].replace("\t", " ") if done.stdout.strip() else ""


def noise():
    """A word of warning where more than the two processes were at work."""
    busy = os.getloadavg()[0] > max(3, os.cpu_count() + 1)
    return (" (others were at work: the ratios and the CPU seconds say more than the rates)" if busy
            else "")


def report(bench, pairs, runs, args):
    leat = "leat → leat"
    rate = {name: [bench.bytes * 8 / s / 1e9 for s, _, _ in runs[name]] for name in pairs}
    lines = [
        "## One file over loopback, two processes: leat and its peers", "",
        f"`bench/peers/ngtcp2.py --rounds {args.rounds} --megabytes {args.megabytes}`, "
        f"{record.now()}, on {record.machine()}; load average "
        f"{os.getloadavg()[0]:.1f} at the end{noise()}. {'; '.join(bench.versions)}. One stream over HTTP/3, medians of "
        f"{args.rounds} rounds in rotating order, with the least and the most.", "",
        "| server → client | Gbit/s | CPU s server | CPU s client | CPU s a GB, both |",
        "| --- | --- | --- | --- | --- |"]
    for name in pairs:
        server = statistics.median(run[1] for run in runs[name])
        client = statistics.median(run[2] for run in runs[name])
        both = statistics.median(run[1] + run[2] for run in runs[name])
        lines.append(f"| {name} | {statistics.median(rate[name]):.2f} ({min(rate[name]):.2f} to "
                     f"{max(rate[name]):.2f}) | {server:.2f} | {client:.2f} | "
                     f"{both * 1e9 / bench.bytes:.2f} |")
    lines += ["", "leat's pair against others', round by round:", ""]
    for name in bench.ends():
        pair = f"{name} → {name}"
        if pair == leat:
            continue
        ratios = sorted(a / b for a, b in zip(rate[leat], rate[pair]))
        cpus = sorted((b[1] + b[2]) / (a[1] + a[2]) for a, b in zip(runs[leat], runs[pair]))
        wins = sum(ratio > 1 for ratio in ratios)
        lines.append(f"- {name}: {statistics.median(ratios):.2f} times its throughput (from {ratios[0]:.2f} to "
                     f"{ratios[-1]:.2f}; ahead in {wins} of {len(ratios)} rounds), {statistics.median(cpus):.2f} "
                     f"times its throughput a CPU second (from {cpus[0]:.2f} to {cpus[-1]:.2f}).")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--leat", default=os.path.join(ROOT, "build/release/cli/leat"))
    parser.add_argument("--peers", default=PEERS)
    parser.add_argument("--doc")
    args = parser.parse_args()
    if not os.access(args.leat, os.X_OK):
        sys.exit(f"ngtcp2.py: {args.leat} is not there: run 'make' first")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    bench = Bench(args)
    try:
        check_whole(bench)
        pairs = {
            **{f"{name} → {name}": pair for name, pair in bench.ends().items()},
            "leat → ngtcp2": (bench.leat_server, bench.ngtcp2_client),
            "ngtcp2 → leat": (bench.ngtcp2_server, bench.leat_client),
        }
        names = list(pairs)
        runs = {name: [] for name in names}
        for turn in range(args.rounds):
            at = turn % len(names)
            for name in names[at:] + names[:at]:
                server, client = pairs[name]
                runs[name].append(bench.once(server(), client))
                print(f"round {turn + 1}: {name}: {runs[name][-1][0]:.2f} s, CPU "
                      f"{runs[name][-1][1]:.2f} + {runs[name][-1][2]:.2f} s", file=sys.stderr)
        text = report(bench, names, runs, args)
    finally:
        bench.close()
    print(text)
    if args.doc:
        record.write(args.doc, MARK, text)


if __name__ == "__main__":
    main()
