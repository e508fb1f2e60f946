"""interop/run_endpoint.sh keeps the runner's contract: its exit status, and what the cases ask for that
can be seen without a capture.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

from peers import LEAT, Case, main, sha256

INTEROP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../interop")
ENDPOINT = os.path.join(INTEROP, "run_endpoint.sh")
MB = 1 << 20


class Endpoint(Case):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        os.makedirs(self.path("certs"))
        for name, theirs in (("ca.pem", "ca.pem"), ("server.pem", "cert.pem"), ("server.key", "priv.key")):
            shutil.copy(self.path(name), self.path(os.path.join("certs", theirs)))

    def play(self, role, case, **env):
        return self.start(f"endpoint-{role}", [ENDPOINT], {
            "ROLE": role, "TESTCASE": case, "LEAT": LEAT, "WWW": self.path("www"),
            "DOWNLOADS": self.path("got"), "CERTS": self.path("certs"), "LISTEN": "127.0.0.1:0"} | env)

    def serve(self, case):
        server = self.play("server", case)
        return server, int(server.wait_line(r"^listening on \S*:(\d+)$").group(1))

    def fetch(self, case, port, *files, **env):
        return self.play("client", case, CONNECT_TO=f"127.0.0.1:{port}",
                         REQUESTS=" ".join(f"https://localhost:{port}/{name}" for name in files), **env)

    def test_an_unknown_case_comes_before_everything(self):
        for role in ("client", "server"):
            self.assertEqual(self.play(role, "nonsense").wait(), 127)
            self.assertEqual(self.play(role, "nonsense", LEAT="/no/such/leat", CERTS="/no").wait(), 127)

    def test_a_missing_command_is_a_failure_of_the_run(self):
        for role in ("client", "server"):
            self.assertEqual(self.play(role, "handshake", LEAT="/no/such/leat").wait(), 1)

    def test_whatever_fails_is_1(self):
        self.assertEqual(self.play("server", "handshake", WWW="/no/such/folder").wait(), 1)
        self.assertEqual(self.play("server", "handshake", CERTS="/no/such/folder").wait(), 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            self.assertEqual(self.play("server", "handshake", LISTEN=f"127.0.0.1:{port}").wait(), 1)
        self.assertEqual(self.play("client", "handshake", REQUESTS="").wait(), 1)
        server, port = self.serve("handshake")
        self.assertEqual(self.fetch("handshake", port, "no-such-file").wait(), 1)
        self.assertEqual(server.stop(), 0)

    @unittest.skipUnless(shutil.which("dpkg") and shutil.which("readelf"), "tells packages by dpkg and readelf")
    def test_the_image_has_the_libraries_that_leat_needs(self):
        with open(os.path.join(INTEROP, "Dockerfile")) as f:
            installed = set(re.findall(r"[\w.+-]+", f.read()))
        said = subprocess.run(["readelf", "-d", LEAT], capture_output=True, text=True, check=True).stdout
        needed = [lib for lib in re.findall(r"\(NEEDED\).*\[(.+)\]", said) if not re.match("lib[aut]b?san", lib)]
        self.assertGreater(len(needed), 3)
        owners = subprocess.run(["dpkg", "-S"] + ["*/" + lib for lib in needed], capture_output=True, text=True,
                                check=True).stdout.splitlines()
        for lib in needed:
            packages = {line.split(":")[0] for line in owners if line.endswith("/" + lib)}
            self.assertTrue(packages & (installed | {"libc6"}), f"interop/Dockerfile: {lib} is in {packages}")

    def test_resumption_of_one_file_and_of_two(self):
        digests = {name: self.put(name, 1000) for name in ("one", "two")}
        server, port = self.serve("resumption")
        for files in (["one"], ["one", "two"]):
            client = self.fetch("resumption", port, *files)
            self.assertEqual(client.wait(), 0)
            self.assertEqual(client.text().count("resumed:"), 2)
            self.assertRegex(client.text(), r"(?s)resumed: *no .*resumed: *yes ")
            for name in files:
                self.assertEqual(self.digest_of(name), digests[name])
        self.assertEqual(server.stop(), 0)

    def digest_of(self, name):
        return sha256(self.path(os.path.join("got", name)))

    def test_keys_are_updated_within_the_first_megabyte_however_packets_are_acknowledged(self):
        """Few ACKs or many: the client's packets do not count."""
        self.put("large", 3 * MB)
        server, port = self.serve("transfer")
        for options in ("", "--window 4k"):
            os.makedirs(self.path("qlogs"))
            client = self.fetch("keyupdate", port, "large", QLOGDIR=self.path("qlogs"), CLIENT_PARAMS=options)
            self.assertEqual(client.wait(), 0)
            [name] = os.listdir(self.path("qlogs"))
            with open(self.path(os.path.join("qlogs", name))) as f:
                events = [json.loads(record) for record in f.read().split("\x1e")[2:]]
            received, updates = 0, []
            for event in events:
                if event["name"] == "quic:packet_received":
                    received += event["data"]["raw"]["length"]
                elif event["name"] == "quic:key_updated" and event["data"].get("key_phase", 0) > 0:
                    updates.append((event["data"]["key_type"], received))
            self.assertEqual([update[0] for update in updates], ["client_1rtt_secret", "server_1rtt_secret"])
            self.assertGreater(updates[0][1], 256 << 10)
            self.assertLess(updates[1][1], MB)
            shutil.rmtree(self.path("qlogs"))
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    main()
