"""`leat bench`: every work runs, its JSON has what docs/BENCHMARKS.md says, and what must not allocate
does not. Counts are judged, times are not.

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys

COUNTED = sys.argv.pop(2) != ""  # whether liballoccount.so is there to be preloaded

from harness import FAILURE, LEAT, OK, PATIENCE, USAGE, Case, environment, main  # noqa: E402


def bench(*args, env=None):
    return subprocess.run([LEAT, "bench", *args], capture_output=True, text=True, timeout=PATIENCE,
                          env=env or environment(), check=False)


class Bench(Case):
    def report(self, *args):
        done = bench(*args, "--json")
        self.assertEqual(done.returncode, OK, done.stderr)
        return json.loads(done.stdout)

    def rows(self, *args):
        report = self.report(*args)
        self.assertEqual(report["tool"], "leat bench")
        self.assertEqual(report["work"], args[0])
        self.assertGreater(report["max_rss_kib"], 0)
        for row in report["results"]:
            if "operations" in row:
                self.assertGreater(row["operations"], 0)
                self.assertGreater(row["ns_per_op"], 0)
                self.assertGreater(row["ops_per_second"], 0)
        return report["results"]

    def assert_no_heap(self, *args):
        """Counted where the counter can be preloaded, in a plain build."""
        rows = self.rows(*args)
        for row in rows:
            if COUNTED:
                self.assertEqual(row["allocs_per_op"]["all"], 0, row["name"])
                self.assertEqual(row["alloc_bytes_per_op"]["all"], 0, row["name"])
            else:
                self.assertIsNone(row["allocs_per_op"])
        return rows

    def test_messages(self):
        [row] = self.assert_no_heap("transfer", "-n", "20000", "--warm-up", "20000")
        self.assertEqual(row["operations"], 20000)
        [row] = self.assert_no_heap("transfer", "-n", "20000", "--warm-up", "20000", "--burst", "16",
                                    "--stack", "quic")

    def test_transfers(self):
        [row] = self.assert_no_heap("transfer", "--total", "500k", "-n", "50", "--warm-up", "50")
        self.assertGreater(row["packets_per_op"], 500 * 1024 / 1452)
        self.assertEqual(row["key_updates"], 0)
        # Updates are three PTOs apart (RFC 9001 s6.5), and on a link without delay next to no time goes by.
        [row] = self.assert_no_heap("transfer", "--total", "500k", "-n", "50", "--warm-up", "50", "--delay", "10ms",
                                    "--key-update", "2000")
        self.assertGreater(row["key_updates"], 1)

    def test_streams(self):
        [row] = self.assert_no_heap("streams", "-n", "5000", "--warm-up", "5000")
        self.assertLessEqual(row["p50_ns"], row["p99_ns"])
        self.assertLessEqual(row["p99_ns"], row["p99_9_ns"])

    def test_as_many_handshakes_as_are_asked_for(self):
        for asked, made in (("1", 1), ("50", 50), ("75", 76)):  # rounds of one size, 50 at most
            self.assertEqual([row["operations"] for row in self.rows("handshake", "-n", asked)], [made] * 2)

    def test_handshakes(self):
        """As many heap calls as the issue allows, and of leat's own none: under a slow link too, where the
        clock waits between the packets."""
        for options, most in (((), 420), (("--verify",), 980), (("--resume",), 170),
                              (("--delay", "10ms"), 420)):
            ours, bare = self.rows("handshake", "-n", "100", *options)
            if COUNTED:
                self.assertEqual(ours["allocs_per_op"]["leat"], 0)
                self.assertEqual(ours["alloc_bytes_per_op"]["leat"], 0)
                self.assertLessEqual(ours["allocs_per_op"]["all"], most)
                self.assertGreater(bare["allocs_per_op"]["tls"], 100)

    def test_buffers_beside_the_same_allocators_uncounted(self):
        """jemalloc needs room that the loader gives at start-up alone: --no-heap must not lose it."""
        counted = self.rows("buffers", "-n", "2000", "--size", "64")
        uncounted = self.rows("buffers", "-n", "2000", "--size", "64", "--no-heap")
        for with_heap, without in zip(counted, uncounted, strict=True):
            self.assertEqual(with_heap.keys(), without.keys())
            self.assertIsNone(without["allocs_per_op"])

    def test_small_works(self):
        for work in ("tparams", "tasks", "queue", "udpip", "protect"):
            with self.subTest(work=work):
                self.assert_no_heap(work, "-n", "20000")
        self.assert_no_heap("buffers", "-n", "2000", "--size", "1200")
        self.rows("socket", "-n", "2000")

    def test_files(self):
        eight, large, _default, malloc = self.rows("readfile", "--size", "4096", "--workers", "2",
                                                   "-n", "2000", "--folder", self.got)
        self.assertLess(eight["mem_bytes"], large["mem_bytes"])
        if COUNTED:
            self.assertGreaterEqual(malloc["allocs_per_op"]["all"], 1)
        self.assert_nothing_left()

    def test_idle(self):
        [row] = self.rows("idle", "-n", "50")
        self.assertEqual(row["connections"], 50)
        self.assertGreater(row["pool_bytes"], 0)
        if COUNTED:  # else objects are larger by their guards
            self.assertLessEqual(row["pool_bytes_in_use"], 2 * 6144)

    def test_scale(self):
        conns, streams = self.assert_no_heap("scale", "-n", "3200", "-c", "5", "--stack", "quic")
        self.assertEqual(conns["name"], "among 5 connections")
        self.assertEqual(streams["name"], "among 5 streams")
        [row] = self.rows("scale", "-n", "3200", "-c", "1", "--among", "streams")
        self.assertGreater(row["packets_per_op"], 0.1)

    def test_link(self):
        """A delayed, lossy, slow link: waiting is left out of the time but told."""
        [row] = self.rows("transfer", "-n", "3000", "--delay", "10ms", "--loss", "2%", "--rate", "50M")
        self.assertGreater(row["packets_lost"], 0)
        self.assertGreater(row["waited_s"], 0.5)
        self.assertLess(row["link_gbit_s"], 0.05)

    def test_capture(self):
        capture = self.target("link.pcap")
        keys = self.target("keys")
        self.rows("transfer", "-n", "100", "--warm-up", "1", "--pcap", capture, "--keylog", keys)
        with open(capture, "rb") as file:
            self.assertEqual(file.read(4), b"\x4d\x3c\xb2\xa1")
        with open(keys, encoding="ascii") as file:
            self.assertIn("CLIENT_TRAFFIC_SECRET_0 ", file.read())

    def test_bad_use(self):
        for args in ((), ("nothing",), ("transfer", "--size", "0"), ("transfer", "--delay", "soon"),
                     ("transfer", "--loss", "2"), ("socket", "--proto", "sctp"), ("transfer", "tasks"),
                     ("tparams", "--pcap", "/nowhere/at/all"), ("buffers", "--delay", "10ms")):
            with self.subTest(args=args):
                done = bench(*args)
                self.assertEqual(done.returncode, USAGE)
                self.assertTrue(done.stderr.startswith("leat: "), done.stderr)
                self.assertEqual(done.stdout, "")
        for work in "transfer", "handshake", "streams":
            done = bench(work, "-n", "10", "--rate", "1000")
            self.assertEqual(done.returncode, FAILURE)
            self.assertIn("connection", done.stderr)  # which it tells the end of
        done = bench("transfer", "--rate", "100k")  # 4,800 seconds for the messages that warm up
        self.assertEqual(done.returncode, FAILURE)
        self.assertIn("--warm-up", done.stderr)
        done = bench("transfer", "--pcap", "/nowhere/at/all")
        self.assertEqual(done.returncode, FAILURE)
        self.assertIn("/nowhere/at/all", done.stderr)

    def test_without_the_counter(self):
        done = bench("tparams", "-n", "1000", "--json", "--no-heap")
        self.assertIsNone(json.loads(done.stdout)["results"][0]["allocs_per_op"])


if __name__ == "__main__":
    main()
