#!/usr/bin/python3
"""leat rtp against peers that nobody here wrote: GStreamer sends VP8 with the transport-wide extension over a
lossy link and believes leat's feedback; tshark reads the same from it as leat does; leat's sender believes
GStreamer's feedback.

Two views of the same packets are compared, never a view with a clock: however slow the machine, they agree.

    test_gstreamer.py LEAT

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
from captures import dump, tshark_reads, twcc_of, write_pcap  # noqa: E402
from udp_link import Link, Way  # noqa: E402

LEAT = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "leat"
PYTHON = "/usr/bin/python3"  # Debian's own has GStreamer's bindings
EXT_ID = 3
FRAMES = 120
PATIENCE = 120


def drops(port):
    """Datagrams that the kernel could not put into the socket of that port."""
    with open("/proc/net/udp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == port:
                return int(fields[-1])
    raise AssertionError(f"no socket on port {port}")


class Feedback:
    """`leat rtp feedback` from its listening line to its sums."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [LEAT, "rtp", "feedback", "--listen", "udp://127.0.0.1:0", "--ext-id", str(EXT_ID), "--json",
             *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.match(r"listening on 127\.0\.0\.1:(\d+)", line)
        if not found:
            raise AssertionError("leat rtp feedback: " + line)
        self.port = int(found.group(1))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        return json.loads(out.splitlines()[-1])


def gst_sends(rtp_port, frames=FRAMES):
    done = subprocess.run(
        [PYTHON, os.path.join(HERE, "gst_sender.py"), str(rtp_port), str(frames), str(EXT_ID)],
        stdout=subprocess.PIPE, timeout=PATIENCE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def number_of(packet):
    return int(packet[f"ext{EXT_ID}"], 16)


NONE = 2**64 - 1  # GStreamer's word for a time that it does not know
WINDOW = 300 * 10**6  # nanoseconds of sending at least, over which rtpsession looks


class Stats:
    """twcc-stats worked out anew, by GStreamer's own definitions: when packets were sent is GStreamer's word, when
    they came and how large they were is the caller's. A window reaches from the newest packet that was sent WINDOW
    before the last that came, and came, to the last of all, which does not count."""

    def __init__(self):
        self.window, self.last = [], (None, None)
        self.said = {"bitrate_sent": 0, "bitrate_recv": 0, "packet_loss_pct": 0, "avg_delta_of_delta": NONE}

    def take(self, packets):
        """The statistics after one feedback's packets, each (sent or None, came or None, size), and whether there
        was a window that is full; until there is one they stay as they are."""
        for sent, came, size in packets:
            deltas = [b - a if a is not None and b is not None else None
                      for a, b in zip(self.last, (sent, came))]
            self.window.append((sent, came, size, deltas[1] - deltas[0] if None not in deltas else None))
            self.last = (sent, came)
        known = [i for i, p in enumerate(self.window) if None not in p[:2]]
        last = self.window[known[-1]] if known else None
        start = next((i for i in reversed(known) if last[0] - self.window[i][0] >= WINDOW), None)
        if start is None:
            return self.said, False
        self.window = self.window[start:]
        first, counted = self.window[0], self.window[:-1]
        for name, i in (("bitrate_sent", 0), ("bitrate_recv", 1)):
            bits = sum(p[2] for p in counted if p[i] is not None) * 8
            span = (last[i] - first[i]) % 2**64  # a burst may have come within a tick
            self.said[name] = bits * 10**9 // span if span else self.said[name]
        self.said["packet_loss_pct"] = sum(p[1] is None for p in counted) * 100 / len(counted)
        twice = [p[3] for p in counted if p[3] is not None]
        if twice:
            mean = abs(sum(twice)) // len(twice)
            self.said["avg_delta_of_delta"] = mean if sum(twice) >= 0 else -mean
        return self.said, True


class Gstreamer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pcap = os.path.join(self.folder.name, "feedback.pcap")

    def tearDown(self):
        self.folder.cleanup()

    def send_through(self, way, *options):
        """GStreamer through a link to leat: (its twcc-stats, leat's capture, leat's sums). leat received exactly
        what the link and the kernel let through."""
        feedback = Feedback("--pcap", self.pcap, *options)
        link = Link(0, ("127.0.0.1", feedback.port), out=way, keep=True).start()
        said = gst_sends(link.port)
        counts = link.stop()["out"]
        dropped = drops(feedback.port)
        sums = feedback.stop()
        packets = dump(LEAT, self.pcap)
        self.assertEqual(said["failed"], [])
        self.assertGreater(counts["in"], 200)
        self.assertEqual(sums["packets"], counts["out"] + counts["duplicated"] - dropped)
        self.assertEqual(sums["packets"], sum(p["kind"] == "rtp" for p in packets))
        self.assertEqual((sums["without_ext"], sums["bad"], sums["send_errors"]), (0, 0, 0))
        if not dropped:
            self.assertEqual(sums["duplicates"], counts["duplicated"])
        return said, packets, sums

    def assert_feedback_is_true(self, packets):
        """Each packet of the capture is told as received once it was recorded, and no other is."""
        came = set()
        for p in packets:
            if p["kind"] == "rtp":
                came.add(number_of(p))
            elif p in twcc_of([p]):
                told = {n for n, _ in p["received"]}
                of_these = {n for n in came if p["base"] <= n < p["base"] + p["statuses"]}
                self.assertEqual(told, of_these)

    def assert_gstreamer_believes(self, said, packets):
        """Packet by packet GStreamer has from each feedback what leat's capture shows: the number, whether it came,
        and when. From that follow its statistics: losses, bitrates and deltas, to the bit."""
        sizes = {number_of(p): p["len"] for p in packets if p["kind"] == "rtp"}
        feedback = twcc_of(packets)[:len(said["packets"])]
        self.assertGreater(len(feedback), 5)
        self.assertEqual(len(said["stats"]), len(said["packets"]))
        zero, stats, compared = None, Stats(), 0
        for told, ours, theirs in zip(said["packets"], feedback, said["stats"]):
            tick, came = ours["reference"] * 256, {}
            for number, delta in ours["received"]:
                tick += delta
                came[number] = tick * 250000
            numbers = [n & 0xffff for n in range(ours["base"], ours["base"] + ours["statuses"])]
            self.assertEqual([(p[0], not p[1]) for p in told], [(n, n in came) for n in numbers])
            told = [[number, lost, size, sent if sent != NONE else None, remote]
                    for number, lost, size, sent, remote in told]
            for number, lost, size, sent, remote in told:
                if not lost:
                    zero = remote - came[number] if zero is None else zero
                    self.assertEqual(remote - zero, came[number])
                if not lost and sent is not None:
                    self.assertEqual(size, sizes[number])
            self.assertEqual((theirs["packets_sent"], theirs["packets_recv"]), (len(numbers), len(came)))
            want, full = stats.take([(sent, came.get(number), size) for number, _, size, sent, _ in told])
            compared += full
            for name in ("bitrate_sent", "bitrate_recv"):
                self.assertEqual(theirs[name], want[name], name)
            self.assertAlmostEqual(theirs["packet_loss_pct"], want["packet_loss_pct"], places=3)  # a float there
            if want["avg_delta_of_delta"] != NONE:
                self.assertEqual(theirs["avg_delta_of_delta"], want["avg_delta_of_delta"])
        self.assertGreater(compared, 2)

    def test_a_clean_path(self):
        said, packets, _ = self.send_through(Way(1))
        self.assert_feedback_is_true(packets)
        self.assert_gstreamer_believes(said, packets)

    def test_a_lossy_path(self):
        said, packets, sums = self.send_through(Way(7, loss=0.05, delay=20, jitter=3))
        self.assertGreater(sums["lost"], 0)
        self.assert_feedback_is_true(packets)
        self.assert_gstreamer_believes(said, packets)
        self.assertTrue(any(s["packet_loss_pct"] > 0 for s in said["stats"]))
        self.assertTrue(any(s["avg_delta_of_delta"] != 0 for s in said["stats"]))

    def test_a_lossy_path_with_reordering_and_duplicates(self):
        said, packets, _ = self.send_through(
            Way(7, loss=0.05, delay=20, jitter=3, reorder=0.02, duplicate=0.01))
        self.assert_feedback_is_true(packets)
        self.assert_gstreamer_believes(said, packets)
        self.check_tshark(packets)

    def check_tshark(self, packets):
        """tshark: the same sequence numbers and deltas as leat."""
        feedback = [p for p in packets if p["kind"] == "rtcp"]
        port = int(feedback[0]["from"].rsplit(":", 1)[1])
        ours = [(p["base"], p["statuses"], p["reference"], p["received"]) for p in twcc_of(packets)]
        self.assertGreater(len(ours), 5)
        self.assertEqual(tshark_reads(self.pcap, port), ours)

    def test_reports_of_rfc_8888_tell_all_that_came(self):
        _, packets, sums = self.send_through(Way(3, loss=0.03), "--format", "rfc8888")
        self.assertGreater(sums["feedback_packets"], 5)
        came = {(p["ssrc"], p["seq"]) for p in packets if p["kind"] == "rtp"}
        blocks = [b for p in packets if p.get("type") == 205 and p["count"] == 11 for b in p["blocks"]]
        self.assertEqual({(ssrc, seq) for ssrc, seq, received, _, _ in blocks if received}, came)
        self.assertTrue(any(not b[2] for b in blocks))

    def test_leats_sender_believes_gstreamers_feedback(self):
        self.send_through(Way(1))
        link = Link(0, None, out=Way(9, loss=0.04, delay=10), keep=True)
        receiver = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "gst_receiver.py"), str(link.rear_port), str(EXT_ID)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        link.to = ("127.0.0.1", json.loads(receiver.stdout.readline())["rtp_port"])
        link.start()
        done = subprocess.run(
            [LEAT, "rtp", "play", self.pcap, "--twcc", str(EXT_ID), "--to", f"udp://127.0.0.1:{link.port}",
             "--results"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
            timeout=PATIENCE)
        link.stop()
        out, _ = receiver.communicate("", timeout=PATIENCE)
        received = json.loads(out.splitlines()[-1])["received"]
        results = [json.loads(line) for line in done.stdout.splitlines()]
        told = {k: int(v) for k, v in re.findall(r"^(\w+) +(\d+) ", done.stderr, re.M)}
        self.assertGreater(told["feedback"], 5)
        self.assertEqual(told["feedback_bad"], 0)
        # tshark reads the same feedback; the last of it may have come when play had ended.
        answers = os.path.join(self.folder.name, "answers.pcap")
        write_pcap(answers, link.answers(), 5005)
        feedback = tshark_reads(answers, 5005)
        self.assertGreaterEqual(len(feedback), told["feedback"])
        self.assert_results_are(results, feedback[:told["feedback"]])
        arrived = {r["seq"] for r in results if r["arrived"] is not None}
        self.assertLessEqual(arrived, set(received))
        self.assertGreater(len(arrived), len(received) / 2)

    def assert_results_are(self, results, feedback):
        """The results say what these packets say: what came, when, and what did not."""
        came, numbers = {}, set()
        for base, count, reference, received in feedback:
            tick = reference * 256
            for number, delta in received:
                tick += delta
                came.setdefault(number, tick)
            numbers.update(range(base, base + count))
        arrived = {r["seq"]: r["arrived"] for r in results if r["arrived"] is not None}
        self.assertEqual(set(arrived), set(came))
        zero = min(came)
        for number, tick in came.items():
            self.assertEqual(arrived[number] - arrived[zero], (tick - came[zero]) * 250000)
        self.assertEqual({r["seq"] for r in results}, numbers)
        self.assertTrue(any(r["arrived"] is None for r in results))


if __name__ == "__main__":
    unittest.main(verbosity=2)
