"""Handshakes between leat and ngtcp2: each cipher, Retry, certificates.

SPDX-License-Identifier: MIT
"""
from peers import CIPHERS, LEAT, Case, main

EXIT_CERTIFICATE = 8
SIZE = 100000


class Handshakes(Case):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        self.digests = {"file": self.put("file", SIZE)}

    def assert_cipher(self, leat, cipher):
        """leat says at the connection's end which one it was."""
        self.assertTrue(leat.find(rf"^connection \S+ h3 {CIPHERS[cipher][1]}$"),
                        f"{leat.name} names no connection with {cipher}")

    def test_each_cipher_from_ngtcp2(self):
        # The server takes any; leat's client offers one.
        _, port = self.ngtcp2_server()
        for cipher in CIPHERS:
            with self.subTest(cipher=cipher):
                client = self.leat_get(port, ["file"], "--ciphers", cipher)
                self.assert_fetched(client, self.digests)
                self.assert_cipher(client, cipher)

    def test_each_cipher_to_ngtcp2(self):
        # leat takes any; ngtcp2's client offers one.
        server, port = self.leat_server()
        for cipher, (gnutls, _) in CIPHERS.items():
            with self.subTest(cipher=cipher):
                client = self.ngtcp2_get(
                    port, ["file"], "--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+" + gnutls,
                    quiet=False)
                self.assert_fetched(client, self.digests)
                self.assertTrue(client.find(rf"^Negotiated cipher suite is {gnutls}$"))
        self.assert_stops(server)
        for cipher in CIPHERS:
            self.assert_cipher(server, cipher)

    def test_server_chooses_among_the_ciphers_of_ngtcp2(self):
        for cipher in CIPHERS:
            with self.subTest(cipher=cipher):
                server, port = self.leat_server("--ciphers", cipher)
                self.assert_fetched(self.ngtcp2_get(port, ["file"]), self.digests)
                self.assert_stops(server)
                self.assert_cipher(server, cipher)

    def test_no_cipher_in_common(self):
        _, port = self.ngtcp2_server(
            "--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM")
        client = self.leat_get(port, ["file"], "--ciphers", "aes-256-gcm")
        self.assertNotEqual(client.wait(), 0)
        self.assertTrue(client.find(r"^leat: .*handshake"), "the message names no handshake")

    def test_retry_by_ngtcp2(self):
        server, port = self.ngtcp2_server("-V", quiet=False)
        client = self.leat_get(port, ["file"])
        self.assert_fetched(client, self.digests)
        server.stop()
        for said in (r"^Sending Retry packet", r"^Token was successfully validated"):
            self.assertTrue(server.find(said), f"the server's log has no line /{said}/")

    def test_retry_by_leat(self):
        server, port = self.leat_server("--retry")
        client = self.ngtcp2_get(port, ["file"], quiet=False)
        self.assert_fetched(client, self.digests)
        self.assertTrue(client.find(r"type=Retry"), "the client's log tells of no Retry")
        self.assert_stops(server)

    def test_certificate_of_an_unknown_authority(self):
        # The system's authorities know nothing of the test's.
        _, port = self.ngtcp2_server()
        client = self.start("leat-get", self.leat_command(port))
        self.assertEqual(client.wait(), EXIT_CERTIFICATE)
        self.assertTrue(client.find(r"^leat: .*certificate.*"), "no message about the certificate")

    def test_certificate_for_another_name(self):
        _, port = self.ngtcp2_server()
        client = self.start("leat-get", self.leat_command(port, "--ca", self.path("ca.pem"),
                                                          host="elsewhere.example"))
        self.assertEqual(client.wait(), EXIT_CERTIFICATE)
        self.assertTrue(client.find(r"^leat: .*(name|owner|elsewhere)"), "no message about the name")

    def leat_command(self, port, *options, host="localhost"):
        return [LEAT, "get", f"https://{host}:{port}/file", "--connect-to", f"127.0.0.1:{port}",
                "-o", self.path("got/file"), *options]


if __name__ == "__main__":
    main()
