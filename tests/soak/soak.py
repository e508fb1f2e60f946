#!/usr/bin/env python3
"""soak.py --program LEAT-SOAK --udplink UDPLINK [--seconds N]: mixed load for so long, over two bad links, to
a server that is restarted under it: killed (its connections end in stateless resets) and, every third time,
told to leave. Tickets and reset keys outlive the process.

It ends well when every byte came that was sent, every connection that ended early is explained by a restart,
both processes hold no more memory in the last third of their life than in the third before, no file
descriptor is left over, and the kinds of load all happened. Prints what was counted; --record LINE writes it
as a row for docs/TESTING.md.

SPDX-License-Identifier: MIT
"""
import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli")
sys.path.insert(0, TOOLS)
import certificates  # noqa: E402

IDLE = 8.0       # idle and handshake timeouts of the program
GRACE = 6.0      # from a restart until whoever it broke knows: probes back off
PAGE = resource.getpagesize()

# What a bad link does; the other one only delays.
BAD = ["up.loss=1", "down.loss=1", "reorder=2", "reorder-by=8", "duplicate=1", "corrupt=0.3", "delay=8",
       "rate=40000", "queue=150", "--rebind", "port", "--rebind-after", "2500", "--rebind-every", "5000"]
GOOD = ["delay=2", "rate=200000", "queue=1000"]


class Process:
    """A program and its lines, from one that says where it listens (if it does) to its end."""

    def __init__(self, name, args, listens=True):
        self.name = name
        self.lines = []
        self.samples = []  # (time, bytes resident, file descriptors)
        self.popen = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      errors="replace")
        self.address = None
        if listens:
            for line in self.popen.stdout:
                self.lines.append(line.rstrip())
                found = re.match(r"listening on (\S+)", line)
                if found:
                    self.address = found.group(1)
                    break
            if self.address is None:
                raise SystemExit(f"soak: {name} does not start: " + " ".join(self.lines))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.append(line.rstrip())

    def sample(self, now):
        try:
            with open(f"/proc/{self.popen.pid}/statm") as f:
                resident = int(f.read().split()[1]) * PAGE
            self.samples.append((now, resident, len(os.listdir(f"/proc/{self.popen.pid}/fd"))))
        except (OSError, IndexError):
            pass  # it has just ended

    def end(self, number, patience=60):
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        try:
            status = self.popen.wait(patience)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            status = "hangs"
        self.reader.join(10)
        return status

    def counts(self):
        found = (re.match(r"(\w+)=(\d+)$", line) for line in self.lines)
        return {m.group(1): int(m.group(2)) for m in found if m}

    def faults(self):
        return [f"{self.name}: {line}" for line in self.lines if line.startswith("FAULT")]


def flatness(process):
    """Memory and descriptors: the most of the last third of a life, and of the third before it."""
    n = len(process.samples) // 3
    before, last = process.samples[n:2 * n], process.samples[2 * n:]
    return tuple(max(s[i] for s in part) for part in (before, last) for i in (1, 2))


class Soak:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.mkdtemp(prefix="leat-soak.")
        self.random = random.Random(args.seed)
        self.failures = []
        self.restarts = []  # (before, after): the time without a server
        self.old_servers = []
        self.cert, self.key = certificates.make(self.dir, "localhost")
        self.ticket = os.path.join(self.dir, "ticket")
        with open(self.ticket, "wb") as f:
            f.write(os.urandom(64))

    def start_server(self, listen):
        return Process("server", [self.args.program, "server", listen, self.cert, self.key, self.ticket])

    def restart(self, graceful):
        before = time.monotonic()
        old = self.server
        status = old.end(signal.SIGTERM if graceful else signal.SIGKILL)
        if graceful and status != 0:
            self.failures.append(f"a server that was told to leave ended with {status}")
        self.failures += old.faults()
        self.old_servers.append(old)
        self.server = self.start_server(old.address)
        self.restarts.append((before, time.monotonic()))

    def explained(self, line):
        """A connection's early end, by a restart that it lived through, or that its handshake fell into."""
        found = re.search(r"from=([\d.]+) to=([\d.]+)", line)
        began, ended = float(found.group(1)), float(found.group(2))
        return any(before <= ended and began <= after and ended <= after + IDLE + GRACE
                   for before, after in self.restarts)

    def run(self):
        seconds = self.args.seconds
        self.server = self.start_server("127.0.0.1:0")
        links = [Process("link", [self.args.udplink, "--to", self.server.address, "--seed", str(self.args.seed),
                                  *faults]) for faults in (BAD, GOOD)]
        client = Process("client", [self.args.program, "client", str(seconds), str(self.args.workers),
                                    str(self.args.seed), *(link.address for link in links)], listens=False)
        start = time.monotonic()
        # The last server lives for nearly half of the time: what it holds must come to rest.
        times = [start + seconds * 0.55 * (i + 1) / self.args.restarts for i in range(self.args.restarts)]
        while client.popen.poll() is None:
            now = time.monotonic()
            for process in (client, self.server):
                process.sample(now)
            if times and now >= times[0]:
                times.pop(0)
                self.restart(graceful=len(self.restarts) % 3 == 2)
            if now > start + seconds + 150:
                self.failures.append("the client does not end")
                break
            time.sleep(min(1.0, seconds / 100))
        status = client.end(signal.SIGKILL)
        left = self.server.end(signal.SIGTERM)
        for link in links:
            link.end(signal.SIGTERM)
        self.judge(client, status, left)
        for link in links:
            print(f"link: {'; '.join(link.lines[-2:])}")
        shutil.rmtree(self.dir, ignore_errors=True)
        return self.report(client)

    def judge(self, client, status, left):
        counts = client.counts()
        self.failures += client.faults() + self.server.faults()
        if status != 0:
            self.failures.append(f"the client ended with {status}: {' | '.join(client.lines[-3:])}")
        if left != 0:
            self.failures.append(f"the server ended with {left}: {' | '.join(self.server.lines[-3:])}")
        if not self.args.short:
            self.failures += ["no restart explains: " + line for line in client.lines
                              if line.startswith("ended ") and not self.explained(line)]
        happened = ["streams", "bytes_up", "bytes_down", "bytes_resent", "cancelled", "datagrams_back",
                    "media_arrived", "media_loose_arrived", "migrations", "key_updates", "resumed",
                    "early_accepted", "jobs"]
        if self.args.restarts >= 3:
            happened += ["resets", "early_rejected", "retried"]
        if not self.args.short:
            self.judge_memory(client)
        else:
            happened = ["streams", "bytes_up", "bytes_down", "jobs"]
        for name in happened:
            if counts.get(name, 0) == 0:
                self.failures.append(f"nothing was counted of '{name}'")

    def judge_memory(self, client):
        for process in (client, self.server):
            if len(process.samples) < 30:
                self.failures.append(f"only {len(process.samples)} looks at the {process.name}'s memory")
                continue
            was, was_fds, at_last, at_last_fds = flatness(process)
            print(f"{process.name}: {was >> 10} KiB resident at most, then {at_last >> 10}; "
                  f"{was_fds} file descriptors, then {at_last_fds}")
            if at_last > was * 1.05 + (1 << 20):
                self.failures.append(f"the {process.name}'s memory is not flat")
            if at_last_fds > was_fds * 1.5 + 4:
                self.failures.append(f"the {process.name}'s file descriptors are not flat")

    def report(self, client):
        counts = client.counts()
        print(" ".join(f"{name}={value}" for name, value in counts.items()))
        ended = [line for line in client.lines if line.startswith("ended ")]
        print(f"restarts={len(self.restarts)} connections ended early={len(ended)}")
        for failure in self.failures[:40]:
            print("FAIL", failure)
        print("soak: " + (f"{len(self.failures)} failures" if self.failures else
                          f"{self.args.seconds} s, whole: no byte lost, memory flat, no descriptor left"))
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--udplink", required=True)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--restarts", type=int, help="default: one each 20 s of the first half, 3 at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true",
                        help="for CI: only whether each byte came and nothing is left. Memory has no time to come "
                             "to rest, chance may leave a kind of load out, and a machine that is busy "
                             "elsewhere may time a connection out")
    args = parser.parse_args()
    if args.restarts is None:
        args.restarts = max(3, args.seconds // 36) if args.seconds >= 60 else 1
    print(f"seed {args.seed}, {args.seconds} s, {args.workers} workers, {args.restarts} restarts", flush=True)
    sys.exit(Soak(args).run())


main()
