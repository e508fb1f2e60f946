"""Version negotiation between leat and ngtcp2, and as a bare socket sees it.

SPDX-License-Identifier: MIT
"""
import re
import socket
import struct
import threading

from peers import Case, PATIENCE, main

V1 = 0x00000001
RESERVED = re.compile(r"0x([0-9a-f]a){4}")  # RFC 9000 s15
EXIT_OK, EXIT_BROKEN = 0, 9


def version_negotiation(to, sender, versions):
    """The packet (RFC 9000 s17.2.1) that answers one with these connection IDs."""
    return (b"\xc0" + struct.pack("!I", 0) + bytes([len(to)]) + to + bytes([len(sender)]) + sender +
            b"".join(struct.pack("!I", version) for version in versions))


def connection_ids(packet):
    """DCID and SCID of a long header."""
    end = 6 + packet[5]
    return packet[6:end], packet[end + 1:end + 1 + packet[end]]


class Answers(threading.Thread):
    """A server in front of leat's client: answers the first datagram with `answer(dcid, scid)`, and
    relays everything from the second on to the port `relay_to`, when there is one."""

    def __init__(self, answer, relay_to=None):
        super().__init__(daemon=True)
        self.answer, self.relay_to = answer, relay_to
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        if relay_to:
            self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.back.connect(("127.0.0.1", relay_to))
        self.start()

    def run(self):
        first, self.client = self.front.recvfrom(65536)
        self.front.sendto(self.answer(*connection_ids(first)), self.client)
        if self.relay_to:
            threading.Thread(target=self._down, daemon=True).start()
            self.back.send(first)
            while True:
                self.back.send(self.front.recv(65536))

    def _down(self):
        while True:
            self.front.sendto(self.back.recv(65536), self.client)


class Versions(Case):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        self.digests = {"file": self.put("file", 100000)}

    def test_ngtcp2_starts_with_a_version_that_leat_does_not_know(self):
        # A reserved one, and the draft of version 2 that ngtcp2 0.12 calls v2draft (0x709a50c4).
        server, port = self.leat_server()
        for version, known in (("0x1a2a3a4a", "v1"), ("v2draft", "v2draft,v1")):
            with self.subTest(version=version):
                client = self.ngtcp2_get(port, ["file"], "-v", version,
                                         f"--preferred-versions={known}",
                                         f"--other-versions={known}", quiet=False)
                self.assert_fetched(client, self.digests)
                listed = re.findall(r"VN v=(0x[0-9a-f]+)", client.text())
                self.assertIn("0x00000001", listed)
                self.assertTrue([v for v in listed if RESERVED.fullmatch(v)],
                                f"no reserved version among {listed}")
                self.assertTrue(client.find(r"^Client selected version 0x1$"))
        self.assert_stops(server)

    def ask(self, sock, size, dcid, scid):
        head = (b"\xc0" + struct.pack("!I", 0x1a2a3a4a) + bytes([len(dcid)]) + dcid +
                bytes([len(scid)]) + scid)
        sock.send(head + bytes(size - len(head)))

    def test_server_answers_full_datagrams_of_unknown_versions_alone(self):
        server, port = self.leat_server()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(("127.0.0.1", port))
            # The first is too small to be answered (RFC 9000 s6.1): the answer is the second's.
            self.ask(sock, 1199, b"too-small", b"never")
            # IDs of other versions may be longer than 20 bytes (RFC 8999 s5.1).
            self.ask(sock, 1200, b"d" * 255, b"s" * 31)
            packet = sock.recv(65536)
        dcid, scid = connection_ids(packet)
        self.assertTrue(packet[0] & 0x80)
        self.assertEqual(packet[1:5], bytes(4))
        self.assertEqual((dcid, scid), (b"s" * 31, b"d" * 255))
        at = 5 + 1 + len(dcid) + 1 + len(scid)
        versions = [v for (v,) in struct.iter_unpack("!I", packet[at:])]
        self.assertIn(V1, versions)
        self.assertNotIn(0x1a2a3a4a, versions)
        self.assert_stops(server)

    def test_client_gives_up_on_a_server_without_its_versions(self):
        server = Answers(lambda dcid, scid: version_negotiation(scid, dcid, [0x0a1a2a3a, 0xff00001d]))
        client = self.leat_get(server.port, ["file"])
        self.assertEqual(client.wait(), EXIT_BROKEN)
        self.assertTrue(client.find(r"^leat: .*speaks none of our QUIC versions"))

    def test_client_ignores_a_list_that_has_its_version(self):
        _, port = self.ngtcp2_server()
        front = Answers(lambda dcid, scid: version_negotiation(scid, dcid, [0x0a1a2a3a, V1]), port)
        self.assert_fetched(self.leat_get(front.port, ["file"]), self.digests)

    def test_client_ignores_a_list_for_another_connection(self):
        _, port = self.ngtcp2_server()
        front = Answers(lambda dcid, scid: version_negotiation(scid, dcid[::-1], [0x0a1a2a3a]), port)
        self.assert_fetched(self.leat_get(front.port, ["file"]), self.digests)


if __name__ == "__main__":
    main()
