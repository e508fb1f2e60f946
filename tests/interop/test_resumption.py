"""Sessions resumed and 0-RTT between leat and ngtcp2, both ways.

SPDX-License-Identifier: MIT
"""
import os

from peers import Case, main

SIZE = 100000


class Resumption(Case):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        self.digests = {name: self.put(name, SIZE) for name in ("one", "two")}

    def said(self, process, resumed, early):
        """leat's statistics of its only connection."""
        self.assertTrue(process.find(rf"^\s*resumed\W+{resumed}\b"), f"{process.name}: resumed?")
        self.assertTrue(process.find(rf"^\s*early_data\W+{early}\b"), f"{process.name}: 0-RTT?")

    def fetch(self, port, *options):
        client = self.leat_get(port, self.digests, "--session-file", self.path("session"),
                               *options)
        self.assert_fetched(client, self.digests)
        return client

    def test_leat_resumes_at_ngtcp2(self):
        server, port = self.ngtcp2_server(quiet=False)
        self.said(self.fetch(port), "no", "none")
        self.said(self.fetch(port, "--no-early-data"), "yes", "none")
        self.assertFalse(server.find(r"pkt rx .*type=0RTT"))
        for _ in range(2):  # and with the session of a resumed connection
            self.said(self.fetch(port), "yes", "accepted")
        server.wait_line(r"pkt rx .*type=0RTT")

    def test_leat_is_rejected_by_another_ngtcp2(self):
        # It has other ticket keys.
        server, port = self.ngtcp2_server()
        self.said(self.fetch(port), "no", "none")
        server.stop()
        _, port = self.ngtcp2_server()
        self.said(self.fetch(port), "no", "rejected")

    def ngtcp2_fetch(self, port, *options):
        client = self.ngtcp2_get(port, ["one"], f"--session-file={self.path('session')}",
                                 f"--tp-file={self.path('params')}", *options, quiet=False)
        self.assert_fetched(client, {"one": self.digests["one"]})
        return client

    def test_ngtcp2_resumes_at_leat(self):
        for early, options in (("accepted", ["--early-data"]), ("none", [])):
            with self.subTest(early=early):
                for name in ("session", "params"):
                    if os.path.exists(self.path(name)):
                        os.unlink(self.path(name))
                server, port = self.leat_server(*options)
                self.ngtcp2_fetch(port)
                second = self.ngtcp2_fetch(port)
                if early == "accepted":
                    self.assertTrue(second.find(r"pkt tx .*type=0RTT"))
                self.assert_stops(server)
                self.said(server, "yes", early)

    def test_ngtcp2_resumes_at_a_leat_that_started_anew(self):
        # The key is kept, what was accepted is forgotten: early data could be a replay.
        options = ["--early-data", "--ticket-key", self.path("ticket.key")]
        server, port = self.leat_server(*options)
        self.ngtcp2_fetch(port)
        self.assert_stops(server)
        server, port = self.leat_server(*options)
        second = self.ngtcp2_fetch(port)
        self.assertTrue(second.find(r"pkt tx .*type=0RTT"))
        self.assert_stops(server)
        self.said(server, "yes", "none")


if __name__ == "__main__":
    main()
