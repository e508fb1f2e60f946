"""tshark, with the key log, understands every packet of leat's own transfers: no malformed one, none
that it cannot decrypt. The captures have Retry, key updates, connection IDs, the close.

GSO would put many packets into one datagram of the capture, so it is off.

SPDX-License-Identifier: MIT
"""
from peers import CIPHERS, Case, main
from trace import HANDSHAKE, INITIAL, RETRY, Capture, Trace, may_capture

ACK, CRYPTO, NEW_TOKEN, NEW_CONNECTION_ID, CLOSE_APP, HANDSHAKE_DONE = 3, 6, 7, 0x18, 0x1d, 0x1e  # ACK with ECN counts
STREAM = set(range(8, 16))
H3_NO_ERROR = 0x100
SIZE = 2000000


class Captured(Case):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        self.digests = {"file": self.put("file", SIZE)}

    def capture(self, server_options, client_options, leat_client=True):
        """One transfer from leat; the datagrams of the client, and of the server."""
        env = {"SSLKEYLOGFILE": self.path("keys")}
        server, port = self.leat_server("--no-offload", *server_options, env=env)
        capture = Capture(self, "capture.pcapng", [port])
        if leat_client:
            client = self.leat_get(port, ["file"], "--no-offload", *client_options, env=env)
        else:
            client = self.ngtcp2_get(port, ["file"], *client_options, env=env)
        self.assert_fetched(client, self.digests)
        # Its statistics come with the client's close: ended before it had read that, it would count
        # no close of its own and send one.
        server.wait_line(r"^ *datagrams_sent: ")
        self.assert_stops(server)
        trace = Trace(capture.finish(), self.path("keys"))
        for fault in trace.faults():
            self.fail(fault)
        self.assertTrue(Trace(trace.path).faults(), "without the keys tshark should not read it")
        sent = self.stat(server, "datagrams_sent")
        ours = [row for row in trace.rows if row.source[1] == port]
        theirs = [row for row in trace.rows if row.source[1] != port]
        # A Retry is sent before there is a connection that could count it.
        self.assertEqual(len([row for row in ours if RETRY not in row.types]), sent,
                         "the capture has not every datagram that the server sent")
        return theirs, ours

    def assert_whole(self, rows, *frames):
        seen = {frame for row in rows for frame in row.frames}
        for frame in frames:
            self.assertIn(frame, seen, f"no frame of type 0x{frame:x}")

    def phases(self, rows):
        """How often the key phase turned over."""
        phases = [int(row.get("quic.key_phase")) for row in rows if row.get("quic.key_phase")]
        return sum(a != b for a, b in zip(phases, phases[1:]))

    def assert_transfer(self, client, server):
        self.assert_whole(client, ACK, CRYPTO, NEW_CONNECTION_ID)
        self.assert_whole(server, ACK, CRYPTO, NEW_CONNECTION_ID, NEW_TOKEN, HANDSHAKE_DONE)
        for rows in (client, server):
            self.assertTrue(STREAM & {frame for row in rows for frame in row.frames})
            self.assertLessEqual({INITIAL, HANDSHAKE}, {t for row in rows for t in row.types})
        closes = [row for row in client if CLOSE_APP in row.frames]
        self.assertTrue(closes, "no CONNECTION_CLOSE of the client")
        self.assertEqual(int(closes[0].get("quic.cc.error_code.app"), 0), H3_NO_ERROR)

    def test_plain_transfer_with_each_cipher(self):
        for cipher in CIPHERS:
            with self.subTest(cipher=cipher):
                client, server = self.capture([], ["--ciphers", cipher])
                self.assert_transfer(client, server)
                self.assertFalse([row for row in server if RETRY in row.types])

    def test_retry_and_key_updates(self):
        # The first update comes as soon as so many packets are sent; how many follow is a matter of
        # time, for they are three PTOs apart (RFC 9001 s6.5).
        client, server = self.capture(["--retry", "--key-update", "10"], ["--key-update", "2"])
        self.assert_transfer(client, server)
        # A client that waits long for its Retry sends its first Initial again, and is answered again.
        initials = [row for row in client if INITIAL in row.types]
        bare = [row for row in initials if not row.get("quic.token")]
        self.assertEqual(len([row for row in server if RETRY in row.types]), len(bare))
        self.assertEqual(initials[:len(bare)], bare, "a token, and then none")
        self.assertGreater(len(initials), len(bare), "no Initial has a token")
        numbers = [row.numbers("quic.packet_number")[0] for row in initials]
        self.assertEqual(numbers, sorted(set(numbers)), "Retry must not reset packet numbers")
        for rows in (client, server):
            self.assertGreaterEqual(self.phases(rows), 1)

    def test_key_updates_of_ngtcp2(self):
        client, server = self.capture(["--retry"], ["--key-update=1ms"], leat_client=False)
        for rows in (client, server):
            self.assertGreaterEqual(self.phases(rows), 1)


if __name__ == "__main__":
    reason = may_capture()
    if reason:
        print(f"SKIPPED: this user cannot capture on loopback: {reason}", flush=True)
        raise SystemExit(77)
    main()
