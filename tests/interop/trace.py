"""Captures on loopback, and what tshark reads in them with a key log.

SPDX-License-Identifier: MIT
"""
import os
import signal
import socket
import subprocess
import time

from peers import PATIENCE, program

INITIAL, ZERO_RTT, HANDSHAKE, RETRY = range(4)  # quic.long.packet_type of version 1
MARK = b"leat interop: the capture may end here"

# What is read of each datagram. A field that comes once a packet or a frame gives a list.
FIELDS = (
    "frame.time_relative", "ip.src", "ipv6.src", "udp.srcport", "udp.dstport", "udp.length",
    "ip.dsfield.ecn", "quic.header_form", "quic.long.packet_type", "quic.long.packet_type_v2",
    "quic.version", "quic.dcid", "quic.scid", "quic.token", "quic.key_phase", "quic.packet_number",
    "quic.frame_type", "quic.ack.ect0_count", "quic.cc.error_code", "quic.cc.error_code.app",
    "quic.path_challenge.data", "quic.path_response.data", "tls.handshake.type",
    "tls.handshake.ciphersuite", "tls.quic.parameter.initial_max_streams_bidi",
    "quic.crypto.offset", "ip.dst", "ipv6.dst", "frame.number", "frame.protocols", "_ws.col.Info", "_ws.malformed", "_ws.expert.group",
    "_ws.expert.severity", "_ws.expert.message", "quic.remaining_payload",
    "quic.decryption_failed", "quic.connection.unknown", "quic.bad_retry",
)

# What may not be in a capture of good packets: what it is, and how a row shows it.
ERROR, MALFORMED = 0x800000, 0x7000000  # severity and group of tshark's expert information
FAULTS = (
    ("not QUIC", lambda row: "quic" not in row.fields["frame.protocols"].split(":")),
    ("malformed", lambda row: row.get("_ws.malformed") is not None or
     MALFORMED in row.numbers("_ws.expert.group")),
    ("an error to tshark", lambda row: ERROR in row.numbers("_ws.expert.severity")),
    ("not decrypted", lambda row: bool(row.get("quic.remaining_payload") or
                                       row.get("quic.decryption_failed"))),
    ("of a connection that is not known", lambda row: bool(row.get("quic.connection.unknown"))),
    ("a bad Retry", lambda row: bool(row.get("quic.bad_retry"))),
    ("without a frame", lambda row: not row.frames and not row.bare),
)


class Capture:
    """dumpcap on loopback, for the UDP ports given. Needs the right to capture."""

    def __init__(self, case, name, ports):
        self.path = case.path(name)
        # The last word is a datagram to a socket of our own: once it is in the file, all is.
        self.mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.mark.bind(("127.0.0.1", 0))
        wanted = [*ports, self.mark.getsockname()[1]]
        self.process = case.start("dumpcap", [
            program("dumpcap"), "-q", "-i", "lo", "-w", self.path, "-B", "64",
            "-f", " or ".join(f"udp port {port}" for port in wanted)])
        self.process.wait_line(r"^File: ")

    def finish(self):
        """Ends the capture; returns the file."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.mark.sendto(MARK, self.mark.getsockname())
            with open(self.path, "rb") as f:
                f.seek(max(0, os.path.getsize(self.path) - 65536))
                if MARK in f.read():
                    break
            if time.monotonic() > deadline:
                raise AssertionError("the capture does not come to its end")
            self.process.reader.join(0.05)
        self.process.stop(signal.SIGINT)
        self.mark.close()
        dropped = self.process.find(r"dropped on interface .*: \d+/([1-9]\d*)")
        if dropped:
            raise AssertionError(f"dumpcap dropped packets: {dropped.group(0)}")
        return self.path


def may_capture():
    """Why this user cannot capture on loopback; None when he can."""
    done = subprocess.run([program("dumpcap"), "-q", "-i", "lo", "-a", "duration:0", "-w", "/dev/null"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout.strip().splitlines()[-1]


class Row:
    """A datagram: .get(field) is its first value or None, .all(field) a list."""

    def __init__(self, text):
        self.fields = dict(zip(FIELDS, text.rstrip("\n").split("\t")))

    def all(self, field):
        text = self.fields[field]
        return text.split(",") if text else []

    def numbers(self, field):
        return [int(value, 0) for value in self.all(field)]

    def get(self, field):
        values = self.all(field)
        return values[0] if values else None

    @property
    def time(self):
        return float(self.fields["frame.time_relative"])

    @property
    def source(self):
        """Address and port."""
        return (self.get("ip.src") or self.get("ipv6.src"), int(self.get("udp.srcport")))

    @property
    def target(self):
        return (self.get("ip.dst") or self.get("ipv6.dst"), int(self.get("udp.dstport")))

    @property
    def payload(self):
        """Bytes of UDP payload."""
        return int(self.get("udp.length")) - 8

    @property
    def types(self):
        """Of the long packets, in version 1's numbers; version 2 has turned them by one."""
        return (self.numbers("quic.long.packet_type") +
                [(type_ + 3) % 4 for type_ in self.numbers("quic.long.packet_type_v2")])

    @property
    def frames(self):
        return self.numbers("quic.frame_type")

    @property
    def bare(self):
        """A kind of packet that has no frames: Retry, version negotiation."""
        return RETRY in self.types or 0 in self.numbers("quic.version")

    def __str__(self):
        return (f"{self.get('frame.number')} at {self.time:.6f} from {self.source[1]}: "
                f"{self.fields['_ws.col.Info']} {self.fields['_ws.expert.message']}")


class Trace:
    """The datagrams of a capture, in .rows."""

    def __init__(self, path, keylog=None):
        self.path = path
        keys = ["-o", f"tls.keylog_file:{keylog}"] if keylog else []
        mark = ":".join(f"{b:02x}" for b in MARK)
        columns = [word for field in FIELDS for word in ("-e", field)]
        # A port that the system gave may be one that another protocol has registered, such as 34962.
        done = subprocess.run([program("tshark"), "-n", "-r", path, *keys,
                               "-o", "udp.try_heuristic_first:TRUE", "-Y",
                               f"udp and !(udp.payload contains {mark})", "-T", "fields", *columns],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise AssertionError(f"tshark failed on {path}: {done.stderr}")
        self.rows = [Row(line) for line in done.stdout.splitlines()]

    def faults(self):
        """What should not be in it, in words, with the first datagrams of each kind."""
        found = []
        for what, shown in FAULTS:
            wrong = [str(row) for row in self.rows if shown(row)]
            if wrong:
                found.append(f"{len(wrong)} datagrams of {len(self.rows)} are {what}:\n  " +
                             "\n  ".join(wrong[:5]))
        return found
