"""`leat perf`: client and server on loopback: what is asked for is moved and counted, by either end.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import signal
import subprocess
import threading

from harness import (ADDRESS, INTERRUPTED, LEAT, NOT_FOUND, OK, PATIENCE, TIMEOUT, USAGE, Case, environment,
                     main)


class PerfServer:
    def __init__(self, *options):
        self.process = subprocess.Popen(
            [LEAT, "perf", "server", "--listen", "127.0.0.1:0", "--json", *options],
            stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        found = re.match(r"listening on (\S+)", self.process.stderr.readline())
        self.address = found.group(1)
        self.errors = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        self.errors.extend(self.process.stderr)

    def conn(self):
        """What the server says of the next connection that ends."""
        return json.loads(self.process.stdout.readline())

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


def client(*args):
    return subprocess.run([LEAT, "perf", "client", *args], capture_output=True, text=True,
                          timeout=PATIENCE, env=environment(), check=False)


class Perf(Case):
    def setUp(self):
        super().setUp()
        self.server = PerfServer()

    def tearDown(self):
        self.assertEqual(self.server.stop(), OK)
        super().tearDown()

    def run_client(self, *args):
        done = client(self.server.address, *args)
        self.assertEqual(done.returncode, OK, done.stderr)
        return done

    def report(self, *args):
        return json.loads(self.run_client("--json", *args).stdout)

    def test_upload(self):
        report = self.report("-n", "10000001", "-P", "3")
        self.assertEqual(report["start"]["mode"], "upload")
        self.assertEqual(report["end"]["sum"]["operations"], 3)
        seen = self.server.conn()
        self.assertEqual(seen["received"], 10000001 + 3 * 8)
        self.assertEqual(seen["requests"], 3)

    def test_download(self):
        report = self.report("-n", "10000001", "-P", "3", "-R")
        self.assertEqual(report["end"]["sum"]["bytes"], 10000001)
        self.assertEqual(self.server.conn()["sent"], 10000001)

    def test_by_time(self):
        for options in (["-t", "0.5", "-i", "0.1"], ["-t", "0.5", "-i", "0.1", "-R", "-P", "2"]):
            report = self.report(*options)
            self.assertGreater(report["end"]["sum"]["bytes"], 0)
            self.assertGreaterEqual(report["end"]["sum"]["seconds"], 0.5)
            self.assertGreaterEqual(len(report["intervals"]), 1)  # as often as it got to run
            self.assertEqual(report["intervals"][0]["start"], 0)
            for before, after in zip(report["intervals"], report["intervals"][1:]):
                self.assertEqual(before["end"], after["start"])
            self.server.conn()

    def test_requests(self):
        report = self.report("--requests", "--count", "2000", "-P", "10", "--up", "100", "--down",
                             "10000")
        self.assertEqual(report["end"]["sum"]["operations"], 2000)
        self.assertGreater(report["end"]["p50_us"], 0)
        self.assertLessEqual(report["end"]["p50_us"], report["end"]["p99_us"])
        seen = self.server.conn()
        self.assertEqual((seen["requests"], seen["received"], seen["sent"]),
                         (2000, 200000, 20000000))

    def test_requests_at_a_rate(self):
        report = self.report("--requests", "--rate", "500", "--count", "200", "--up", "100", "--down",
                             "100")
        self.assertEqual(report["end"]["sum"]["operations"], 200)
        self.assertGreaterEqual(report["end"]["sum"]["seconds"], 199 / 500)  # the last one is due then
        self.assertEqual(self.server.conn()["requests"], 200)

    def test_requests_over_http3(self):
        data = self.put("file", b"x" * 3000)
        server = self.serve()
        for options in (["-P", "10"], ["-P", "100", "-c", "7", "--threads", "3"]):
            done = client(server.address, "--json", "--requests", "--path", "/file", "--count", "2000", *options)
            self.assertEqual(done.returncode, OK, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(report["end"]["sum"]["operations"], 2000)
            self.assertEqual(report["end"]["sum"]["bytes"], 2000 * os.path.getsize(data))
            self.assertGreater(report["end"]["p50_us"], 0)
        report = json.loads(client(server.address, "--json", "--requests", "--path", "/file", "--rate", "500",
                                   "--count", "100").stdout)
        self.assertEqual(report["end"]["sum"]["operations"], 100)
        done = client(server.address, "--requests", "--path", "/none", "--count", "5")
        self.assertEqual(done.returncode, NOT_FOUND, done.stderr)
        self.assertIn("404", done.stderr)

    def test_several_connections(self):
        sums = {}
        for name, options in (("upload", []), ("download", ["-R"])):
            report = self.report("-n", "3000001", "-P", "5", "-c", "3", "--threads", "2", *options)
            self.assertEqual(report["end"]["sum"]["operations"], 5)
            self.assertEqual(report["start"]["connections"], 3)
            ended = [self.server.conn() for _ in range(3)]
            sums[name] = report["end"]["sum"]["bytes"]
            self.assertEqual(sum(conn["requests"] for conn in ended), 5)
        self.assertEqual(sums["download"], 3000001)
        report = self.report("--handshakes", "--count", "41", "-P", "6", "-c", "3", "--threads", "3")
        self.assertEqual(report["end"]["sum"]["operations"], 41)
        for _ in range(41):
            self.server.conn()
        report = self.report("--requests", "-t", "0.3", "-P", "6", "-c", "2")
        self.assertGreater(report["end"]["sum"]["operations"], 0)

    def test_handshakes(self):
        report = self.report("--handshakes", "--count", "40", "-P", "4")
        self.assertEqual(report["end"]["sum"]["operations"], 40)

    def test_threads(self):
        server = PerfServer("--threads", "3")
        try:
            report = json.loads(client(server.address, "--json", "--handshakes", "--count", "30",
                                       "-P", "5").stdout)
            self.assertEqual(report["end"]["sum"]["operations"], 30)
            report = json.loads(client(server.address, "--json", "-n", "1000001", "-R").stdout)
            self.assertEqual(report["end"]["sum"]["bytes"], 1000001)
        finally:
            self.assertEqual(server.stop(), OK)

    def test_pinned(self):
        """Threads have a core each, and connections go to the loop of their own thread's number."""
        server = PerfServer("--threads", "3", "--pin")
        try:
            report = json.loads(client(server.address, "--json", "--requests", "--count", "60", "-c", "30", "-P", "30",
                                       "--threads", "3", "--pin", "--own-loop").stdout)
            self.assertEqual(report["end"]["sum"]["operations"], 60)
            self.assertEqual(sorted(server.conn()["thread"] for _ in range(30)), 10 * [0] + 10 * [1] + 10 * [2])
            cores = sorted(os.sched_getaffinity(0))
            wanted = sorted(cores[i % len(cores)] for i in range(3))
            folder = f"/proc/{server.process.pid}/task"
            got = sorted(core for thread in os.listdir(folder) for core in os.sched_getaffinity(int(thread)))
            self.assertEqual(got, wanted)
        finally:
            self.assertEqual(server.stop(), OK)

    def test_key_updates(self):
        # The first as soon as so many packets are sent, each next one three PTOs later (RFC 9001 s6.5).
        report = self.report("-t", "2", "--key-update", "1000")
        self.assertGreater(self.server.conn()["key_updates"], 1)
        self.assertGreater(report["end"]["sum"]["key_updates"], 1)

    def test_lines(self):
        out = self.run_client("-t", "0.5", "-i", "0.2").stdout
        self.assertRegex(out, r"(?m)^ +0\.00-\d+\.\d\d +sec +\S+ \S+ +\S+ \S?bits/sec")
        self.assertIn("- - -", out)

    def test_lines_of_several(self):
        """Lines are of all connections: together they are what the last one says."""
        for options in ([], ["-R"], ["--requests"]):
            with self.subTest(options=options):
                report = self.report("-t", "0.55", "-i", "0.2", "-c", "5", "--threads", "3", "-P", "5", *options)
                lines = report["intervals"]
                self.assertGreater(len(lines), 0)
                self.assertEqual([line["start"] for line in lines[1:]], [line["end"] for line in lines[:-1]])
                whole = report["end"]["sum"]
                for figure in ("bytes", "operations"):
                    in_lines = sum(line[figure] for line in lines)
                    if lines[-1]["end"] == whole["end"]:
                        self.assertEqual(in_lines, whole[figure])
                    else:  # what came in less than half an interval stands in no line
                        self.assertLessEqual(in_lines, whole[figure])

    def test_interrupted(self):
        process = subprocess.Popen([LEAT, "perf", "client", self.server.address, "-t", "100", "-i",
                                    "0.1"], stdout=subprocess.PIPE, text=True, env=environment())
        for line in process.stdout:
            if "sec" in line and "Interval" not in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        self.assertEqual(process.wait(PATIENCE), INTERRUPTED)
        self.assertIn("processor time", rest)
        process.stdout.close()

    def test_bad_use(self):
        for args in ((), ("client",), ("client", "a", "b"), ("server", "x"), ("client", "[::1"),
                     ("client", "a:0"), ("client", "a", "-P", "0"), ("elsewhere",),
                     ("client", "a", "--rate", "5"), ("client", "a", "--alpn", "h3"), ("client", "a", "--requests", "--rate", "0"),
                     ("client", "a", "--path", "/x"), ("client", "a", "--requests", "--path", "x"),
                     ("client", "a", "--threads", "2", "-c", "1"), ("client", "a", "-c", "2", "-P", "1"),
                     ("client", "a", "--requests", "-c", "5", "--count", "4"),
                     ("client", "a", "-t", "0"), ("client", "a", "-t", "1", "-n", "5"),
                     ("client", "a", "--requests", "-t", "1", "--count", "5"),
                     ("client", "a", "--handshakes", "--own-loop")):
            with self.subTest(args=args):
                done = subprocess.run([LEAT, "perf", *args], capture_output=True, text=True,
                                      timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, USAGE)
        self.assertEqual(client("no-such-host.invalid").returncode, ADDRESS)

    def test_no_server(self):
        self.assertIn(client("127.0.0.1:1", "-t", "1").returncode, (TIMEOUT, ADDRESS))


if __name__ == "__main__":
    main()
