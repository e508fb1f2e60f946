"""`leat rtp send`, `recv` and `plot` as their users meet them: programs that speak RTP by UDP at both ends,
QUIC in between.

The programs here wait for each packet before they send more than a few others, so that nothing depends on
how fast the machine is; packets live for ever (--lifetime 0) unless a test is about their age.

SPDX-License-Identifier: MIT
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import xml.etree.ElementTree

COUNTER = sys.argv.pop(2) if len(sys.argv) > 2 else ""
COUNTER = os.path.abspath(COUNTER) if COUNTER else None

from harness import (ADDRESS, BROKEN, CERTIFICATE, FILE, LEAT, OK, PATIENCE, TIMEOUT, USAGE,  # noqa: E402
                     Case, Link, environment, main, run)

MODES = [["--datagrams"], ["--stream-per", "packet"], ["--stream-per", "frame"], ["--stream-per", "flow"]]


def rtp(seq, size=1000, ssrc=7):
    head = struct.pack("!BBHII", 0x80, 0x80 | 96, seq & 0xFFFF, seq * 3000 & 0xFFFFFFFF, ssrc)
    return head + bytes((seq + i) & 0xFF for i in range(size - len(head)))


SR = struct.pack("!BBHIQIII", 0x80, 200, 6, 7, 1 << 32, 3000, 5, 5000)
RR = struct.pack("!BBHI", 0x80, 201, 1, 9)


class Program:
    """A socket of a program that speaks RTP."""

    def __init__(self, port=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", port))
        self.socket.settimeout(PATIENCE)
        self.port = self.socket.getsockname()[1]
        self.url = f"udp://127.0.0.1:{self.port}"

    def send(self, data, port):
        self.socket.sendto(data, ("127.0.0.1", port))

    def recv(self):
        return self.socket.recvfrom(65536)

    def close(self):
        self.socket.close()


class Command:
    """`leat rtp send` or `recv`: its lines as they come."""

    def __init__(self, *args, env=None, pass_fds=(), stdout=subprocess.PIPE):
        self.process = subprocess.Popen([LEAT, "rtp", *args], stdout=stdout, stderr=subprocess.PIPE,
                                        text=True, errors="replace", env=env or environment(),
                                        pass_fds=pass_fds)
        self.events, self.err = [], []
        self.news = threading.Condition()
        self.readers = [threading.Thread(target=self._read, args=a, daemon=True)
                        for a in ((self.process.stdout, self.events, json.loads),
                                  (self.process.stderr, self.err, str)) if a[0]]
        for reader in self.readers:
            reader.start()

    def _read(self, stream, into, make):
        for line in stream:
            item = make(line)
            with self.news:
                into.append(item)
                self.news.notify_all()
        with self.news:
            into.append(None)  # the end
            self.news.notify_all()

    def _wait(self, items, found, what):
        with self.news:
            good = self.news.wait_for(lambda: any(x is not None and found(x) for x in items) or None in items,
                                      PATIENCE)
            hits = [x for x in items if x is not None and found(x)]
            if not good or not hits:
                raise AssertionError(f"no {what}: {self.err} {self.events[-3:]}")
            return hits

    def event(self, name, count=1):
        """The count-th event of that name."""
        with self.news:
            self.news.wait_for(lambda: sum(x is not None and x["event"] == name for x in self.events) >= count
                               or None in self.events, PATIENCE)
        hits = self._wait(self.events, lambda x: x["event"] == name, name)
        if len(hits) < count:
            raise AssertionError(f"no {count} of {name}: {self.events[-3:]}")
        return hits[count - 1]

    def ports(self, pattern, count):
        """Of the first so many lines that match."""
        with self.news:
            self.news.wait_for(lambda: sum(bool(x and re.search(pattern, x)) for x in self.err) >= count
                               or None in self.err, PATIENCE)
        hits = self._wait(self.err, lambda x: re.search(pattern, x), pattern)
        if len(hits) < count:
            raise AssertionError(f"no {count} of {pattern}: {self.err}")
        return [int(re.search(pattern, line).group(1)) for line in hits[:count]]

    def port(self, pattern):
        return self.ports(pattern, 1)[0]

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.end()

    def end(self):
        status = self.process.wait(PATIENCE)
        for reader in self.readers:
            reader.join(PATIENCE)
        if self.process.stdout:
            self.process.stdout.close()
        self.process.stderr.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.end()

    def text(self):
        return "".join(x for x in self.err if x)


class Carry(Case):
    def command(self, *args, **kwargs):
        command = Command(*args, **kwargs)
        self.addCleanup(command.kill)
        return command

    def program(self):
        program = Program()
        self.addCleanup(program.close)
        return program

    def pair(self, *flows, options=(), recv_options=(), send_options=(), through=None, env=None, **send_how):
        """A program at each end of each flow; flows are lists of options. Returns what is needed."""
        self.outs = [self.program() for _ in flows]
        self.sources = [self.program() for _ in flows]
        args = []
        for out, flow in zip(self.outs, flows):
            args += ["--out", out.url, "--rtcp-mux", "--lifetime", "0", *flow]
        self.recv = self.command("recv", "--listen", "127.0.0.1:0", *args, *options, *recv_options, env=env)
        port = self.recv.port(r"listening on 127.0.0.1:(\d+)")
        if through:
            port = through(port)
        args = []
        for flow in flows:
            args += ["--in", "udp://127.0.0.1:0", "--rtcp-mux", "--lifetime", "0", *flow]
        self.send = self.command("send", "-k", *args, *options, *send_options, f"127.0.0.1:{port}", env=env,
                                 **send_how)
        self.ports = self.send.ports(r"takes RTP at 127.0.0.1:(\d+)", len(flows))

    def carry(self, count, flow=0, at_once=8, size=1000, first=0):
        for start in range(first, first + count, at_once):
            packets = [rtp(seq, size) for seq in range(start, min(start + at_once, first + count))]
            for packet in packets:
                self.sources[flow].send(packet, self.ports[flow])
            got = [self.outs[flow].recv() for _ in packets]
            self.assertEqual(sorted(data for data, _ in got), sorted(packets))
            self.back = got[-1][1][1]  # the port that leat rtp recv sends from

    def answer(self, flow=0):
        """RTCP from the receiving program: what the receiver's side has sent before it has come, too."""
        self.outs[flow].send(RR, self.back)
        self.assertEqual(self.sources[flow].recv()[0], RR)

    def stop_both(self):
        self.assertEqual(self.send.stop(), OK)
        self.assertEqual(self.recv.stop(), OK)
        return self.send.event("end"), self.recv.event("end")


class Media(Carry):
    def test_each_mode(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.pair(mode)
                self.carry(100)
                sent, got = self.stop_both()
                self.assertEqual(sent["flows"][0]["in_packets"], 100)
                self.assertEqual(sent["flows"][0]["packets_sent"], 100)
                self.assertEqual(got["flows"][0]["out_packets"], 100)
                self.assertEqual(got["flows"][0]["stream_packets_received"], 0 if "--datagrams" in mode else 100)

    def test_packets_larger_than_a_datagram(self):
        self.pair(["--datagrams"])
        self.carry(20, size=5000)
        sent, _ = self.stop_both()
        self.assertEqual(sent["flows"][0]["packets_oversize"], 20)

    def test_several_flows_on_one_connection(self):
        self.pair(["--flow", "5", "--datagrams"], ["--stream-per", "frame"],
                  ["--flow", "4611686018427387903", "--stream-per", "flow"])
        for i in range(3):
            self.carry(30, flow=i)
        sent, got = self.stop_both()
        self.assertEqual([f["flow"] for f in sent["flows"]], [5, 1, 4611686018427387903])
        self.assertEqual([f["out_packets"] for f in got["flows"]], [30, 30, 30])
        self.assertEqual(len([e for e in self.recv.events if e and e["event"] == "connected"]), 1)

    def test_rtcp_goes_both_ways(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.pair(mode)
                self.sources[0].send(SR, self.ports[0])
                data, sender = self.outs[0].recv()
                self.assertEqual(data, SR)
                self.outs[0].send(RR, sender[1])
                self.assertEqual(self.sources[0].recv()[0], RR)
                self.stop_both()

    def test_rtcp_on_the_next_port(self):
        """RFC 3550's way: RTP on a port, RTCP on the one above, at both ends."""
        out = self.program()
        while True:  # a port whose neighbour is free, for the program that receives
            try:
                out_rtcp = Program(out.port + 1)
                break
            except (OSError, OverflowError):
                out = self.program()
        self.addCleanup(out_rtcp.close)
        recv = self.command("recv", "--listen", "127.0.0.1:0", "--out", out.url, "--lifetime", "0",
                            "--rtcp-in", "udp://127.0.0.1:0")
        port = recv.port(r"listening on 127.0.0.1:(\d+)")
        back = recv.port(r"flow 1 takes RTCP at 127.0.0.1:(\d+)")
        while True:  # the same for the ports of the sender, which leat opens itself
            send = Command("send", "-k", "--in", "udp://127.0.0.1:0", "--lifetime", "0", f"127.0.0.1:{port}")
            try:
                media = send.port(r"flow 1 takes RTP at 127.0.0.1:(\d+)")
                rtcp = send.port(r"flow 1 takes RTCP at 127.0.0.1:(\d+)")
                break
            except AssertionError:
                self.assertEqual(send.end(), ADDRESS)
        self.addCleanup(send.kill)
        self.assertEqual(rtcp, media + 1)
        source, source_rtcp = self.program(), self.program()
        source.send(rtp(1), media)
        self.assertEqual(out.recv()[0], rtp(1))
        source_rtcp.send(SR, rtcp)
        self.assertEqual(out_rtcp.recv()[0], SR)
        out_rtcp.send(RR, back)
        self.assertEqual(source_rtcp.recv()[0], RR)

    def test_what_is_no_rtp_is_refused(self):
        self.pair([])
        self.sources[0].send(b"what is this", self.ports[0])
        self.carry(1)
        sent, got = self.stop_both()
        self.assertEqual(sent["flows"][0]["refused"], 1)
        self.assertEqual(got["flows"][0]["packets_received"], 1)

    def test_who_sends_garbage_gets_no_answers(self):
        self.pair([])
        self.carry(1)
        stranger = self.program()
        stranger.send(b"what is this", self.ports[0])
        self.answer()
        sent, _ = self.stop_both()
        self.assertEqual(sent["flows"][0]["refused"], 1)

    def test_an_agreed_protocol_name(self):
        self.pair([], options=["--alpn", "our-own-roq"])
        self.carry(5)
        self.stop_both()


class Connection(Carry):
    def test_resumes_when_the_link_drops(self):
        links = []

        def through(port):
            links.append(Link(port))
            return links[0].port

        self.pair(["--stream-per", "frame"], through=through, send_options=["--idle-timeout", "1"])
        self.addCleanup(links[0].close)
        self.send.event("connected")
        self.carry(20)
        self.answer()  # and so has the ticket
        links[0].stop_after = 0
        self.send.event("closed")
        links[0].go_on()
        self.assertIn("session resumed", self.send.event("connected", 2)["detail"])
        self.carry(20, first=20)
        sent, got = self.stop_both()
        self.assertEqual(sent["reconnects"], 1)
        self.assertGreaterEqual(sent["flows"][0]["packets_sent"], 40)

    def test_a_newer_sender_takes_over(self):
        self.pair(["--datagrams"])
        self.carry(5)
        port = self.recv.port(r"listening on 127.0.0.1:(\d+)")
        second = self.command("send", "-k", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "--lifetime", "0",
                              f"127.0.0.1:{port}")
        second.event("connected")
        self.assertEqual(self.send.end(), BROKEN)
        self.assertIn("127.0.0.1: another connection took over", self.send.text())
        self.assertEqual(self.send.event("closed")["detail"], "another connection took over")
        self.assertRegex(self.recv.event("replaced")["detail"], r"^127.0.0.1:\d+ by 127.0.0.1:\d+$")
        self.ports = [second.port(r"takes RTP at 127.0.0.1:(\d+)")]
        self.carry(5)

    def test_a_receiver_killed_and_started_again(self):
        """With the same keys: the sender hears of it by a stateless reset, long before its idle timeout, and
        resumes."""
        key = self.target("key")
        self.pair(["--stream-per", "frame"], send_options=["--idle-timeout", "600"],
                  recv_options=["--ticket-key", key])
        self.send.event("connected")
        self.carry(20)
        self.answer()  # and so has the ticket
        port = self.recv.port(r"listening on 127.0.0.1:(\d+)")
        self.recv.process.kill()
        self.recv.end()
        self.recv = self.command("recv", "--listen", f"127.0.0.1:{port}", "--out", self.outs[0].url, "--rtcp-mux",
                                 "--ticket-key", key)
        self.recv.port(r"listening on 127.0.0.1:(\d+)")
        self.assertIn("session resumed", self.send.event("connected", 2)["detail"])
        self.carry(20, first=20)
        self.stop_both()

    def test_a_ticket_key_that_cannot_be_read(self):
        done = run("rtp", "recv", "--listen", "127.0.0.1:0", "--out", "udp://127.0.0.1:6000", "--ticket-key", "/")
        self.assert_code(done, FILE)

    def test_follows_a_sender_whose_address_changes(self):
        """As behind a NAT that forgets: the server sees another port and validates it."""
        links = []

        def through(port):
            links.append(Link(port))
            return links[0].port

        self.pair(["--datagrams"], through=through)
        link = links[0]
        self.addCleanup(link.close)
        self.carry(20)
        old, link.back = link.back, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.back.bind(("127.0.0.1", 0))
        threading.Thread(target=link._down, daemon=True).start()
        self.addCleanup(old.close)
        self.carry(20, first=20)
        sent, _ = self.stop_both()
        self.assertEqual(sent["reconnects"], 0)

    def test_no_receiver(self):
        sink = self.program()
        done = run("rtp", "send", "-k", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "--timeout", "0.5", "-i", "0.05",
                   f"127.0.0.1:{sink.port}")
        self.assert_code(done, TIMEOUT)
        lines = [json.loads(line) for line in done.out.splitlines()]
        self.assertTrue(lines)
        for line in lines:  # nobody answered: nothing is known of a path
            self.assertFalse(line.get("connected", False), line)
            self.assertEqual(line.get("rtt", 0), 0)

    def test_a_certificate_that_nobody_vouches_for(self):
        out = self.program()
        recv = self.command("recv", "--listen", "127.0.0.1:0", "--out", out.url)
        port = recv.port(r"listening on 127.0.0.1:(\d+)")
        done = run("rtp", "send", "--in", "udp://127.0.0.1:0", "--rtcp-mux", f"127.0.0.1:{port}")
        self.assert_code(done, CERTIFICATE)

    def test_a_receiver_without_the_flow(self):
        """It lets the sender's streams wait, then stops them: nothing comes, nothing breaks."""
        out = self.program()
        recv = self.command("recv", "--listen", "127.0.0.1:0", "--out", out.url, "--flow", "9")
        port = recv.port(r"listening on 127.0.0.1:(\d+)")
        send = self.command("send", "-k", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "--flow", "3",
                            "--lifetime", "0", "--stream-per", "packet", f"127.0.0.1:{port}", "-i", "0.05")
        send.event("connected")
        source = self.program()
        media = send.port(r"takes RTP at 127.0.0.1:(\d+)")
        for seq in range(40):
            source.send(rtp(seq), media)
        send._wait(send.events, lambda e: e["event"] == "stats" and e["flows"][0]["packets_stopped"] > 0,
                   "stopped packets")
        self.assertEqual(send.stop(), OK)
        self.assertEqual(recv.stop(), OK)
        self.assertEqual(recv.event("unknown flow")["detail"], "3, for which there is no --out")
        self.assertEqual(sum(bool(e) and e["event"] == "unknown flow" for e in recv.events), 1)
        self.assertGreater(recv.event("end")["unknown"], 1)

    def test_datagrams_of_a_flow_that_the_receiver_does_not_have(self):
        out = self.program()
        recv = self.command("recv", "--listen", "127.0.0.1:0", "--out", out.url, "--flow", "9", "-i", "0.05")
        port = recv.port(r"listening on 127.0.0.1:(\d+)")
        send = self.command("send", "-k", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "--flow", "3",
                            f"127.0.0.1:{port}")
        send.event("connected")
        self.program().send(rtp(1), send.port(r"takes RTP at 127.0.0.1:(\d+)"))
        self.assertEqual(recv.event("unknown flow")["detail"], "3, for which there is no --out")
        recv._wait(recv.events, lambda e: e["event"] == "stats" and e["unknown"] == 1, "count")
        self.assertEqual(send.stop(), OK)
        self.assertEqual(recv.stop(), OK)


class Moving(Carry):
    """In a network of its own, where the address that the system sends from can be changed."""

    def test_moves_when_its_own_address_changes(self):
        if os.environ.get("LEAT_TEST_INSIDE"):
            self.inside()
            return
        if subprocess.run(["unshare", "-rn", "ip", "link", "set", "lo", "up"], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("networks of one's own (unshare -rn) are not allowed here")
        done = subprocess.run(["unshare", "-rn", sys.executable, __file__, LEAT, "",
                               "Moving.test_moves_when_its_own_address_changes"], stderr=subprocess.PIPE, text=True,
                              env=environment(LEAT_TEST_INSIDE="1"), timeout=2 * PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def send_from(address):
        subprocess.run(f"ip route replace local 10.9.9.9 dev lo table local src {address}".split(), check=True)

    def inside(self):
        subprocess.run("ip link set lo up".split(), check=True)
        for address in ("10.0.0.1", "10.0.0.2", "10.9.9.9"):
            subprocess.run(f"ip addr add {address}/32 dev lo".split(), check=True)
        self.send_from("10.0.0.1")
        self.outs, self.sources = [self.program()], [self.program()]
        self.recv = self.command("recv", "--listen", "10.9.9.9:0", "--out", self.outs[0].url, "--rtcp-mux")
        port = self.recv.port(r"listening on 10.9.9.9:(\d+)")
        self.send = self.command("send", "-k", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "--lifetime", "0",
                                 f"10.9.9.9:{port}")
        self.ports = [self.send.port(r"takes RTP at 127.0.0.1:(\d+)")]
        self.carry(20)
        self.send_from("10.0.0.2")
        self.assertIn("10.0.0.2:", self.send.event("migrating")["detail"])
        self.carry(20, first=20)
        sent, _ = self.stop_both()
        self.assertEqual(sent["reconnects"], 0)


class Numbers(Carry):
    def test_a_line_holds_as_many_flows_as_there_may_be(self):
        log = self.target("log.jsonl")
        self.pair(*[["--flow", str(10**17 + i)] for i in range(32)], send_options=["-i", "0.02", "--log", log])
        self.carry(20, flow=31)
        self.send.event("stats", 5)
        self.stop_both()
        with open(log) as f:
            lines = [json.loads(line) for line in f]
        self.assertEqual({len(line["flows"]) for line in lines if line["event"] == "stats"}, {32})
        self.assert_code(run("rtp", "plot", log, "-o", self.target("plot.svg")), OK)

    def test_json_lines_and_the_plot(self):
        log = self.target("log.jsonl")
        self.pair(["--datagrams"], options=["-i", "0.02"], send_options=["--log", log])
        self.carry(200)
        self.send.event("stats", 5)
        sent, got = self.stop_both()
        for event in [e for e in self.send.events + self.recv.events if e and e["event"] == "stats"]:
            for name in ("time", "rate", "loss", "rtt", "jitter", "queue_delay", "queue_bytes", "cwnd"):
                self.assertGreaterEqual(event[name], 0)
            self.assertIn("estimate", event)
        self.assertGreater(max(e["rate"] for e in self.send.events if e and e["event"] == "stats"), 0)
        self.assertEqual(got["flows"][0]["bytes_received"], 200 * 1000)
        with open(log) as f:
            lines = [json.loads(line) for line in f]
        self.assertEqual(lines, [e for e in self.send.events if e])
        svg = self.target("plot.svg")
        self.assert_code(run("rtp", "plot", log, "-o", svg), OK)
        tree = xml.etree.ElementTree.parse(svg).getroot()
        drawn = [e for e in tree.iter() if e.tag.endswith("polyline")]
        self.assertGreaterEqual(len(drawn), 5)  # rate, RTT, jitter, queue, loss
        points = len(drawn[0].get("points").split())
        self.assertEqual(points, len([e for e in lines if e["event"] == "stats"]))

    def test_plot_names_the_line_that_it_cannot_read(self):
        log = self.put("log", b'{"event":"stats","time":1,"rate":5}\nwhat\n')
        done = run("rtp", "plot", log)
        self.assert_code(done, FILE)
        self.assertIn("line 2", done.err)
        self.assert_code(run("rtp", "plot", self.put("log", b"")), FILE)
        self.assert_code(run("rtp", "plot", "/nonexistent"), FILE)


class Readers(Carry):
    """Those who are told: of the encoder's rate, and of the numbers."""

    def told(self, next_line):
        """Carries packets until a line came; ends, and checks all lines. The bounds hold in each; each has changed
        by a hundredth, or is the one before again; and what was told last is what the sender believes at the end, but for a hundredth."""
        lines = []
        for seq in range(0, 100000, 16):
            self.carry(16, at_once=16, first=seq)
            while (line := next_line()) is not None:
                lines.append(line)
            if lines:
                break
        sent, _ = self.stop_both()
        while (line := next_line()) is not None:
            lines.append(line)
        for line in lines:
            self.assertRegex(line, rb"^[1-9][0-9]*\n$")
        rates = [int(line) for line in lines]
        for one, other in zip(rates, rates[1:]):
            self.assertTrue(other == one or abs(other - one) * 100 >= one, (one, other))
        self.assertLessEqual(abs(sent["estimate"] - rates[-1]) * 100, rates[-1])
        for rate in rates:
            self.assertTrue(30000 <= rate <= 2500000, rate)

    def test_the_encoder_is_told_its_rate_by_udp(self):
        encoder = self.program()
        encoder.socket.setblocking(False)

        def next_line():
            try:
                return encoder.recv()[0]
            except BlockingIOError:
                return None

        self.pair(["--stream-per", "frame"], send_options=["--estimate-to", encoder.url, "--max-rate", "2500000"])
        self.told(next_line)

    def test_the_encoder_is_told_its_rate_in_a_file(self):
        read, write = os.pipe()
        os.set_blocking(read, False)
        lines = []
        with os.fdopen(read, "rb") as encoder:

            def next_line():
                lines.extend((encoder.read() or b"").splitlines(keepends=True))
                return lines.pop(0) if lines else None

            self.pair([], send_options=["--estimate-to", f"fd:{write}", "--max-rate", "2500000"], pass_fds=[write])
            os.close(write)
            self.told(next_line)

    def test_an_encoder_that_listens_late_is_told(self):
        """Nothing changes, nothing is sent: the rate comes again."""
        encoder = self.program()
        self.pair(["--stream-per", "frame"], send_options=["--estimate-to", encoder.url])
        self.carry(16)
        self.send.event("connected")
        last = None
        while (line := encoder.recv()[0]) != last:
            last = line
        self.stop_both()

    def test_an_encoder_that_goes_away_does_not_matter(self):
        read, write = os.pipe()
        self.pair([], send_options=["--estimate-to", f"fd:{write}"], pass_fds=[write])
        os.close(write)
        os.close(read)
        self.carry(200)
        self.stop_both()

    def test_media_do_not_wait_for_who_reads_the_numbers(self):
        """A pipe that nobody empties is full after some lines: packets go on, and what was written is whole."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        try:
            fcntl.fcntl(write, 1031, 4096)  # F_SETPIPE_SZ
            self.pair([], send_options=["-i", "0.001"], stdout=write)
            end = time.monotonic() + PATIENCE
            while select.select([], [write], [], 0)[1]:
                self.assertLess(time.monotonic(), end, "the pipe does not fill up")
                self.carry(1)
        finally:
            os.close(write)
        self.carry(100)
        out = []

        def drain():
            while data := os.read(read, 65536):
                out.append(data)

        thread = threading.Thread(target=drain, daemon=True)
        thread.start()
        self.assertEqual(self.send.stop(), OK)
        thread.join(PATIENCE)
        lines = [json.loads(line) for line in b"".join(out).split(b"\n")[:-1]]
        self.assertEqual(lines[-1]["event"], "end")


class Usage(Carry):
    def test_bad_arguments(self):
        here = "127.0.0.1:4433"
        url = "udp://127.0.0.1:0"
        for args in (["send", here], ["send", "--in", url], ["send", "--in", "nonsense", here],
                     ["send", "--in", url, "--stream-per", "datagram", here],
                     ["send", "--in", url, "--stream-per", "house", here],
                     ["send", "--in", url, "--flow", "4611686018427387904", here],
                     ["send", "--in", url, "--flow", "2", "--in", url, "--flow", "2", here],
                     ["send", "--in", url, "--urgency", "8", here], ["send", "--in", url, "4433"],
                     ["send", "--in", url, "--lifetime", "soon", here],
                     ["send", "--in", url, "--interval", "0", here],
                     ["send", "--in", url, "--estimate-to", "fd:987", here],
                     ["send", "--in", url, "--estimate-to", "udp://127.0.0.1:0", here],
                     ["send", "--in", url, "--rtcp-to", "udp://127.0.0.1:0", here],
                     ["recv"], ["recv", "--out", "udp://nowhere.invalid:1"], ["recv", "--out", url],
                     ["recv", "--out", "udp://127.0.0.1:6000", "--cert", "x"],
                     ["recv", "--out", "udp://127.0.0.1:6000", "more"], ["plot"], ["plot", "a", "b"]):
            with self.subTest(args=args):
                done = run("rtp", *args)
                self.assert_code(done, USAGE)
                self.assertTrue(done.err.startswith("leat: "), done.err)

    def test_a_log_that_cannot_be_written(self):
        done = run("rtp", "send", "--in", "udp://127.0.0.1:0", "--log", "/nonexistent/log", "127.0.0.1:4433")
        self.assert_code(done, FILE)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_log_on_a_full_disk(self):
        self.pair([], send_options=["--log", "/dev/full"])
        self.carry(8)
        self.assertEqual(self.send.stop(), FILE)
        self.assertEqual(self.send.text().count("cannot write /dev/full: No space left on device"), 1)
        self.assertEqual(self.recv.stop(), OK)

    def test_messages_name_what_is_wrong(self):
        url = "udp://127.0.0.1:0"
        for args, words in ((["127.0.0.1:0"], "HOST:PORT wants a port from 1 to 65535, not '0'"),
                            (["127.0.0.1:99999"], "HOST:PORT wants a port from 1 to 65535, not '99999'"),
                            (["--estimate-to", "http://x:1", "127.0.0.1:1"], "udp://HOST:PORT or fd:N"),
                            (["--estimate-to", "house", "127.0.0.1:1"], "udp://HOST:PORT or fd:N"),
                            (["--max-rate", "2G", "127.0.0.1:1"], "k, M and G allowed, not '2G'"),
                            (["--max-rate", "1Mb", "127.0.0.1:1"], "not '1Mb'"),
                            (["--start-rate", "-1", "127.0.0.1:1"], "not '-1'")):
            with self.subTest(args=args):
                done = run("rtp", "send", "-k", "--in", url, "--rtcp-mux", *args)
                self.assert_code(done, USAGE)
                self.assertIn(words, done.err)

    def test_rates_have_units_of_a_thousand(self):
        encoder = self.program()
        self.pair([], send_options=["--estimate-to", encoder.url, "--max-rate", "1G", "--start-rate", "400k"])
        self.send.event("connected")
        self.carry(8)
        encoder.recv()
        self.stop_both()

    def test_an_encoder_of_whose_host_nobody_knows(self):
        done = run("rtp", "send", "--in", "udp://127.0.0.1:0", "--estimate-to", "udp://nowhere.invalid:1",
                   "127.0.0.1:4433")
        self.assert_code(done, USAGE)
        self.assertIn("nowhere.invalid: there is no such host", done.err)

    def test_addresses_that_cannot_be_used(self):
        taken = self.program()
        url = f"udp://127.0.0.1:{taken.port}"
        self.assert_code(run("rtp", "send", "-k", "--in", url, "127.0.0.1:4433"), ADDRESS)
        self.assert_code(run("rtp", "recv", "--listen", f"127.0.0.1:{taken.port}", "--out", url), ADDRESS)
        self.assert_code(run("rtp", "send", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "nowhere.invalid:1"),
                         ADDRESS)

    def test_help(self):
        for part in ("send", "recv", "plot"):
            done = run("rtp", part, "--help")
            self.assert_code(done, OK)
            self.assertIn(f"usage: leat rtp {part}", done.out.decode())


class SteadyState(Carry):
    """Between the first megabyte and the last, neither process makes a heap call."""

    def steady(self, *flows, **send_how):
        """Media, RTCP both ways, statistics in a file, too, and an encoder that is told its rate."""
        self.pair(*flows, options=["--stats", "-i", "0.1"],
                  recv_options=["--once", "--log", self.target("recv.jsonl")],
                  send_options=["--start-rate", "50000000", "--log", self.target("send.jsonl"),
                                "--estimate-to", self.program().url],
                  env=environment(LD_PRELOAD=COUNTER), **send_how)
        for first in range(0, 4000 // len(flows), 160):
            for flow in range(len(flows)):
                self.carry(160, flow=flow, at_once=16, size=1100, first=first)
                self.sources[flow].send(SR, self.ports[flow])
                self.assertEqual(self.outs[flow].recv()[0], SR)
                self.answer(flow)
        self.assertEqual(self.send.stop(), OK)
        self.assertEqual(self.recv.end(), OK)
        for text in (self.send.text(), self.recv.text()):
            self.assertRegex(text, r"(?m)^ *heap_calls: *[1-9]")  # it does count
            self.assertRegex(text, r"(?m)^ *steady_heap_calls: *0\b")
            self.assertRegex(text, r"(?m)^ *steady_mem_growth: *0\b")

    @unittest.skipUnless(COUNTER, "without the counter of heap calls")
    def test_no_allocation(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.steady(mode)

    @unittest.skipUnless(COUNTER, "without the counter of heap calls")
    def test_no_allocation_with_several_flows_and_a_terminal(self):
        terminal, there = pty.openpty()
        self.addCleanup(os.close, terminal)
        os.set_blocking(terminal, False)
        try:
            self.steady(["--datagrams"], ["--stream-per", "frame"], stdout=there)
            self.assertIn(b"sending ", os.read(terminal, 4096))
        finally:
            os.close(there)


if __name__ == "__main__":
    main()
