#!/usr/bin/env python3
"""A link between UDP programs that spoils what it carries: loss, delay, reordering, duplicates, a rate.

    udp_link.py --listen PORT --to HOST:PORT [--loss P] [--delay MS] [--jitter MS] [--reorder P]
                [--duplicate P] [--rate KBIT] [--seed N] [--back-loss P] [--back-delay MS]

What comes to PORT goes to HOST:PORT, and answers go back to whoever sent last. Options with `back-` are for
the answers, the others for the way out. Prints "listening on 127.0.0.1:PORT", and what it did when it ends
by SIGTERM. Usable as a module too: Link(...).start(), .stop().

SPDX-License-Identifier: MIT
"""
import argparse
import heapq
import json
import random
import select
import signal
import socket
import threading
import time


class Way:
    """One direction: what befalls a datagram, decided by a generator of its own, so that a seed gives the
    same losses whatever the timing."""

    def __init__(self, seed, loss=0.0, delay=0.0, jitter=0.0, reorder=0.0, duplicate=0.0, rate=0.0):
        self.random = random.Random(seed)
        self.loss, self.delay, self.jitter = loss, delay / 1000, jitter / 1000
        self.reorder, self.duplicate, self.rate = reorder, duplicate, rate * 1000 / 8
        self.free_at = 0.0  # when the bottleneck is done with what it has
        self.last_at = 0.0
        self.counts = {"in": 0, "lost": 0, "reordered": 0, "duplicated": 0, "out": 0}

    def times(self, now, size):
        """When the copies of a datagram come out: none, one or two."""
        self.counts["in"] += 1
        dice = [self.random.random() for _ in range(4)]
        if dice[0] < self.loss:
            self.counts["lost"] += 1
            return []
        at = now
        if self.rate:
            self.free_at = max(self.free_at, now) + size / self.rate
            at = self.free_at
        at += self.delay + dice[1] * self.jitter
        if dice[2] < self.reorder:
            self.counts["reordered"] += 1
            at += 0.015
        else:  # jitter alone does not reorder
            at = max(at, self.last_at)
            self.last_at = at
        self.counts["out"] += 1
        if dice[3] < self.duplicate:
            self.counts["duplicated"] += 1
            return [at, at + 0.002]
        return [at]


class Link:
    """`to` may be set later, before anything is sent. keep: answers() gives all that came from there."""

    def __init__(self, listen, to, out=None, back=None, keep=False):
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", listen))
        self.rear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.rear.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        self.rear_port = self.rear.getsockname()[1]
        self.kept = [] if keep else None
        for s in (self.front, self.rear):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            s.setblocking(False)
        self.to, self.peer = to, None
        self.out, self.back = out or Way(1), back or Way(2)
        self.queue, self.order = [], 0
        self.ended = threading.Event()
        self.thread = None

    def _take(self, sock, way, forth):
        while True:
            try:
                data, sender = sock.recvfrom(65536)
            except (BlockingIOError, ConnectionRefusedError):
                return
            now = time.monotonic()
            if forth:
                self.peer = sender
            elif self.kept is not None:
                self.kept.append(data)
            for at in way.times(now, len(data)):
                self.order += 1
                heapq.heappush(self.queue, (at, self.order, forth, data))

    def _give(self):
        now = time.monotonic()
        while self.queue and self.queue[0][0] <= now:
            _, _, forth, data = heapq.heappop(self.queue)
            try:
                if forth:
                    self.rear.sendto(data, self.to)
                elif self.peer:
                    self.front.sendto(data, self.peer)
            except OSError:
                pass  # nobody listens: lost, as on a wire

    def answers(self):
        """What came from the far side, whether it was passed on or lost. After stop()."""
        return self.kept

    def _is_empty(self):
        return not self.queue and not select.select([self.front, self.rear], [], [], 0)[0]

    def run(self):
        """Until it is stopped, and then until all that came in before went out."""
        while not self.ended.is_set() or not self._is_empty():
            wait = 0.05
            if self.queue:
                wait = min(wait, max(0.0, self.queue[0][0] - time.monotonic()))
            ready, _, _ = select.select([self.front, self.rear], [], [], wait)
            if self.front in ready:
                self._take(self.front, self.out, True)
            if self.rear in ready:
                self._take(self.rear, self.back, False)
            self._give()

    def start(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.ended.set()
        if self.thread:
            self.thread.join()
        self.front.close()
        self.rear.close()
        return {"out": self.out.counts, "back": self.back.counts}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--listen", type=int, default=0)
    p.add_argument("--to", required=True)
    p.add_argument("--seed", type=int, default=1)
    for name in ("loss", "delay", "jitter", "reorder", "duplicate", "rate"):
        p.add_argument("--" + name, type=float, default=0.0)
    p.add_argument("--back-loss", type=float, default=0.0)
    p.add_argument("--back-delay", type=float, default=0.0)
    a = p.parse_args()
    host, port = a.to.rsplit(":", 1)
    link = Link(a.listen, (host, int(port)),
                Way(a.seed, a.loss, a.delay, a.jitter, a.reorder, a.duplicate, a.rate),
                Way(a.seed + 1, a.back_loss, a.back_delay))
    signal.signal(signal.SIGTERM, lambda *_: link.ended.set())
    signal.signal(signal.SIGINT, lambda *_: link.ended.set())
    print(f"listening on 127.0.0.1:{link.port}", flush=True)
    link.run()
    print(json.dumps(link.stop()), flush=True)


if __name__ == "__main__":
    main()
