"""Between the first megabyte of a transfer and the last, neither process makes a heap call, and the
context's high-water mark stays where it is.

Counted by liballoccount.so, preloaded into both; --stats prints what they have counted.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys

COUNTER = os.path.abspath(sys.argv.pop(2))

from harness import LEAT, OK, PATIENCE, Case, environment, get, main  # noqa: E402

SIZE = 24 << 20


class SteadyState(Case):
    def transfer(self, protocol, server_options=(), options=(), drop_each=None):
        data = os.urandom(SIZE)
        self.put("file", data)
        counted = environment(LD_PRELOAD=COUNTER)
        server = self.serve("--stats", "--once", *server_options, env=counted)
        port = self.link(server, drop_each=drop_each).port if drop_each else server.port
        done = get(f"https://127.0.0.1:{port}/file", "-k", "--alpn", protocol, "-o", self.target(),
                   "--stats", *options, env=counted)
        self.assert_code(done, OK)
        self.assertEqual(self.read(), data)
        self.assertEqual(server.process.wait(60), 0)
        server.reader.join(60)
        for text in (done.err, server.text()):
            self.assertRegex(text, r"(?m)^ *heap_calls: *[1-9]")  # it does count
            self.assertRegex(text, r"(?m)^ *steady_heap_calls: *0\b")
            self.assertRegex(text, r"(?m)^ *steady_mem_growth: *0\b")
        return done

    def test_h3(self):
        self.transfer("h3")

    def test_hq_interop(self):
        self.transfer("hq-interop")

    def test_through_key_updates(self):
        # 2,000 packets are more than the first megabyte, from which on calls are counted.
        done = self.transfer("h3", ["--key-update", "2000"])
        self.assertGreater(done.stat("key_updates"), 0)

    def test_perf_through_key_updates(self):
        """What bench/limit/run.py measures: `leat perf`, keys updated on the way, no heap call at either end."""
        counted = environment(LD_PRELOAD=COUNTER)
        for options in ([], ["-R"]):
            server = subprocess.Popen([LEAT, "perf", "server", "--listen", "127.0.0.1:0", "--one-off", "--json",
                                       "--key-update", "2000"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=counted)
            address = re.match(r"listening on (\S+)", server.stderr.readline()).group(1)
            client = subprocess.run([LEAT, "perf", "client", address, "--json", "-i", "0", "-n", str(SIZE),
                                     "--key-update", "2000", *options],
                                    capture_output=True, text=True, timeout=PATIENCE, env=counted, check=False)
            self.assertEqual(client.returncode, OK, client.stderr)
            out, err = server.communicate(timeout=PATIENCE)
            self.assertEqual(server.returncode, OK, err)
            end, conn = json.loads(client.stdout)["end"], json.loads(out)
            for ours, updates in ((end, end["sum"]["key_updates"]), (conn, conn["key_updates"])):
                self.assertGreater(ours["steady_bytes"], SIZE - (1 << 20))
                self.assertEqual(ours["steady_heap_calls"], 0)
                self.assertGreater(updates, 0)

    def test_through_loss(self):
        self.transfer("h3", drop_each=200)

    def feedback(self, name):
        """`leat rtp feedback` answers 6 MB of RTP, with losses, reordering and duplicates: no heap call between
        the first megabyte and the last. Feedback paces the sender: the next hundred packets go when the last of
        these is told of."""
        process = subprocess.Popen(
            [LEAT, "rtp", "feedback", "--listen", "udp://127.0.0.1:0", "--format", name, "--ext-id", "1",
             "--interval", "0.002", "--reduced-size", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(LD_PRELOAD=COUNTER))
        port = int(process.stderr.readline().rsplit(":", 1)[1])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect(("127.0.0.1", port))
            for first in range(0, 6000, 100):
                numbers = [n for n in range(first, first + 100) if n % 33]
                numbers[20], numbers[40] = numbers[40], numbers[20]
                numbers.insert(60, numbers[59])
                for n in numbers:
                    sock.send(self.rtp(n))
                self.wait_for_feedback_on(sock, first + 99)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, OK, err)
        sums = json.loads(out.splitlines()[-1])
        self.assertGreater(sums["steady_bytes"], 5000000)
        self.assertEqual(sums["steady_heap_calls"], 0)
        self.assertGreater(sums["feedback_packets"], 50)

    def rtp(self, number):
        return struct.pack("!BBHIIHHBBH", 0x90, 96, number, number * 90, 7, 0xBEDE, 1, 0x11, number >> 8,
                           (number & 0xFF) << 8) + bytes(1100)

    def wait_for_feedback_on(self, sock, number):
        """Reads feedback until one tells of the number. The packet goes again when it may be lost."""
        end = None
        sock.settimeout(1)
        for _ in range(PATIENCE):
            try:
                while end != number + 1:
                    # Both kinds have the first number and how many there are at the same place.
                    first, count = struct.unpack("!HH", sock.recv(2048)[12:16])
                    end = first + count
                return
            except socket.timeout:
                sock.send(self.rtp(number))
        self.fail("no feedback")

    def test_rtp_feedback(self):
        self.feedback("twcc")

    def test_rtp_feedback_of_rfc_8888(self):
        self.feedback("rfc8888")


if __name__ == "__main__":
    main()
