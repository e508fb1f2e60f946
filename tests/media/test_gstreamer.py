#!/usr/bin/python3
"""leat rtp against peers that nobody here wrote: GStreamer sends VP8 with the transport-wide extension over a
lossy link and believes leat's feedback; tshark reads the same from it as leat does; leat's sender believes
GStreamer's feedback.

    test_gstreamer.py LEAT

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
from udp_link import Link, Way  # noqa: E402

LEAT = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "leat"
PYTHON = "/usr/bin/python3"  # Debian's own has GStreamer's bindings
EXT_ID = 3
SECONDS = 6
PATIENCE = 60


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


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


def gst_sends(rtp_port, rtcp_port, seconds=SECONDS):
    done = subprocess.run(
        [PYTHON, os.path.join(HERE, "gst_sender.py"), str(rtp_port), str(rtcp_port), str(seconds),
         str(EXT_ID)], stdout=subprocess.PIPE, timeout=PATIENCE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def mean(values):
    return sum(values) / len(values)


def leat_reads(pcap):
    """The feedback in a capture as `leat rtp dump` reads it: a list of (base, count, {seq: ms})."""
    done = subprocess.run([LEAT, "rtp", "dump", "--json", pcap], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True, text=True, timeout=PATIENCE)
    packets = (json.loads(line) for line in done.stdout.splitlines())
    return [(p["base"], p["statuses"], p["reference"], p["received"])
            for p in packets if p.get("type") == 205 and p.get("count") is not None and "received" in p]


def tshark_reads(pcap):
    """The same as tshark reads it, whatever protocols have registered the ports."""
    done = subprocess.run(["tshark", "-r", pcap, "-d", "udp.port==1-65535,rtcp", "-Y",
                           "rtcp.rtpfb.transportcc.baseseq", "-V"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True,
                          timeout=PATIENCE)
    packets = []
    for part in done.stdout.split("Transport-cc\n")[1:]:
        base = int(re.search(r"Base Sequence Number: (\d+)", part).group(1))
        count = int(re.search(r"Packet Status Count: (\d+)", part).group(1))
        reference = int(re.search(r"Reference Time: (-?\d+)", part).group(1)) & 0xffffff
        deltas = re.findall(r"\[seq: (\d+)\] (-?[\d.]+) ms", part)
        packets.append((base, count, reference, [[int(s), round(float(d) * 4)] for s, d in deltas]))
    return packets


class Gstreamer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pcap = os.path.join(self.folder.name, "feedback.pcap")

    def tearDown(self):
        self.folder.cleanup()

    def send_through(self, way, *options):
        """GStreamer through a link to leat: (its twcc-stats, leat's sums, the link's counts)."""
        rtcp_port = free_port()
        feedback = Feedback("--to", f"udp://127.0.0.1:{rtcp_port}", "--pcap", self.pcap, *options)
        link = Link(0, ("127.0.0.1", feedback.port), out=way).start()
        said = gst_sends(link.port, rtcp_port)
        time.sleep(0.3)  # what the link still holds
        counts = link.stop()["out"]
        sums = feedback.stop()
        self.assertEqual(said["failed"], [])
        self.assertGreater(counts["in"], 300)
        return said["twcc"], sums, counts

    def assert_same_traffic(self, sums, counts):
        """leat received exactly what the link let through, every packet with the extension."""
        self.assertEqual(sums["packets"], counts["out"] + counts["duplicated"])
        self.assertEqual(sums["without_ext"], 0)
        self.assertEqual(sums["bad"], 0)
        self.assertEqual(sums["duplicates"], counts["duplicated"])
        # RFC 3550 counts duplicates as received; a loss at the very end shows nowhere.
        self.assertAlmostEqual(sums["lost"], counts["lost"] - counts["duplicated"], delta=3)

    def test_a_clean_path(self):
        stats, sums, counts = self.send_through(Way(1))
        self.assert_same_traffic(sums, counts)
        self.assertGreater(len(stats), 20)
        self.assertEqual({s["packet_loss_pct"] for s in stats}, {0.0})
        sent = mean([s["bitrate_sent"] for s in stats[5:]])
        received = mean([s["bitrate_recv"] for s in stats[5:]])
        self.assertAlmostEqual(received / sent, 1, delta=0.05)

    def test_a_lossy_path_with_reordering(self):
        stats, sums, counts = self.send_through(
            Way(7, loss=0.05, delay=20, jitter=3, reorder=0.02, duplicate=0.01))
        self.assert_same_traffic(sums, counts)
        packets = sum(s["packets_sent"] for s in stats)
        told = sum(s["packets_sent"] - s["packets_recv"] for s in stats) / packets
        # The windows of twcc-stats (300 ms) are not the same packets: a rough share.
        self.assertAlmostEqual(told, counts["lost"] / counts["in"], delta=0.02)
        sent = mean([s["bitrate_sent"] for s in stats[5:]])
        received = mean([s["bitrate_recv"] for s in stats[5:]])
        self.assertAlmostEqual(received / sent, 1 - told, delta=0.05)
        self.assertTrue(any(s["avg_delta_of_delta"] != 0 for s in stats))
        self.check_tshark()

    def check_tshark(self):
        """tshark: the same sequence numbers and deltas as leat."""
        ours, theirs = leat_reads(self.pcap), tshark_reads(self.pcap)
        self.assertGreater(len(ours), 20)
        self.assertEqual(len(ours), len(theirs))
        large = 0
        for mine, other in zip(ours, theirs):
            self.assertEqual(mine[:3], other[:3])
            self.assertEqual(mine[3], other[3])
            large += sum(not 0 <= d <= 255 for _, d in mine[3])
        self.assertGreater(large, 0, "no large delta was among them")

    def test_reports_of_rfc_8888_are_sent(self):
        rtcp_port = free_port()
        feedback = Feedback("--format", "rfc8888", "--to", f"udp://127.0.0.1:{rtcp_port}", "--pcap",
                            self.pcap)
        gst_sends(feedback.port, rtcp_port, 2)
        sums = feedback.stop()
        self.assertGreater(sums["feedback_packets"], 10)
        done = subprocess.run([LEAT, "rtp", "dump", "--json", "-q", self.pcap], stdout=subprocess.PIPE,
                              check=True, text=True)
        blocks = [b for line in done.stdout.splitlines() if (p := json.loads(line)).get("count") == 11
                  for b in p.get("blocks", [])]
        # All but what came after the last report.
        self.assertLessEqual(sum(b[2] for b in blocks), sums["packets"])
        self.assertGreater(sum(b[2] for b in blocks), 0.9 * sums["packets"])

    def test_leats_sender_believes_gstreamers_feedback(self):
        _, sums, _ = self.send_through(Way(1))
        seconds = SECONDS + 3
        own = free_port()
        receiver = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "gst_receiver.py"), "0", str(own), str(seconds), str(EXT_ID)],
            stdout=subprocess.PIPE, text=True)
        port = json.loads(receiver.stdout.readline())["rtp_port"]
        link = Link(0, ("127.0.0.1", port), out=Way(9, loss=0.04, delay=10)).start()
        done = subprocess.run(
            [LEAT, "rtp", "play", self.pcap, "--twcc", str(EXT_ID), "--to", f"udp://127.0.0.1:{link.port}",
             "--listen", f"udp://127.0.0.1:{own}", "--results"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
        counts = link.stop()["out"]
        receiver.communicate(timeout=PATIENCE)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        told = {k: int(v) for k, v in re.findall(r"^(\w+) +(\d+) ", done.stderr, re.M)}
        self.assertGreater(told["feedback"], 20)
        self.assertEqual(told["feedback_bad"], 0)
        arrived = [r for r in results if r["arrived"] is not None]
        self.assertEqual(len(arrived), told["arrived"])
        # All RTP has a result, but what was sent at the very end.
        self.assertGreater(told["arrived"] + told["lost"] - told["late"], 0.95 * sums["packets"])
        self.assertAlmostEqual((told["lost"] - told["late"]) / sums["packets"],
                               counts["lost"] / counts["in"], delta=0.015)
        # Arrival times keep to the pace of sending: the link's delay does not change.
        owd = [r["arrived"] - r["sent"] for r in arrived]
        # (A busy machine holds a process back for some time: half a second is still no drift.)
        self.assertLess(max(owd) - min(owd), 500e6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
