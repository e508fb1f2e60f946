"""A large file crosses between leat and ngtcp2, each way, and is the same at both ends.

Usage: test_files.py LEAT MEGABYTES

SPDX-License-Identifier: MIT
"""
import sys

from peers import Case, main

MEGABYTES = int(sys.argv.pop(1)) if len(sys.argv) > 1 else 100


class Files(Case):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        self.digest = self.put("large", MEGABYTES * 1000000)

    def test_from_ngtcp2(self):
        _, port = self.ngtcp2_server()
        client = self.leat_get(port, ["large"])
        self.assert_fetched(client, {"large": self.digest})
        self.assertEqual(self.stat(client, "body_bytes"), MEGABYTES * 1000000)

    def test_to_ngtcp2(self):
        server, port = self.leat_server()
        self.assert_fetched(self.ngtcp2_get(port, ["large"]), {"large": self.digest})
        self.assert_stops(server)
        self.assertGreaterEqual(self.stat(server, "stream_bytes_sent"), MEGABYTES * 1000000)


if __name__ == "__main__":
    main()
