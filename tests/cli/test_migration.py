"""Connections that change their addresses in the middle of a file: to the one that the server prefers,
and to another port of the client's.

The files are much larger than the windows, so that some thousand round trips are left to move in.

SPDX-License-Identifier: MIT
"""
import os
import random
import re
import socket
import unittest

from harness import ADDRESS, OK, Case, get, has_ipv6, main, run

SIZE = 24 << 20
SLOW = ["-k", "--window", "16k", "--stats"]


def free_port():
    """One that nobody has, on any address, and that the system gives nobody."""
    while True:
        port = random.randrange(61000, 65536)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as four:
                four.bind(("", port))
            if has_ipv6():
                with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six:
                    six.bind(("::", port))
            return port
        except OSError:
            pass


def preferred():
    """An address of loopback that is this process's alone."""
    pid = os.getpid()
    return f"127.{100 + (pid >> 16) % 100}.{(pid >> 8) & 255}.{pid & 255}:{free_port()}"


class Migration(Case):
    def fetch(self, server, *options):
        self.put("file", os.urandom(SIZE))
        done = get(server.url("/file"), *SLOW, "-o", self.target(), *options)
        self.assert_code(done, OK)
        self.assertEqual(self.read(), self.read_served("file"))
        return done

    def read_served(self, name):
        with open(os.path.join(self.www, name), "rb") as f:
            return f.read()

    def served_moves(self, server):
        self.assertEqual(server.stop(), 0)
        return [int(n) for n in re.findall(r"^ *migrations: *(\d+)", server.text(), re.M)]

    def test_a_client_follows_to_the_preferred_address(self):
        server = self.serve("--preferred-address", preferred(), "--stats", "-v")
        self.assertEqual(self.fetch(server).stat("migrations"), 1)
        self.assertEqual(self.served_moves(server), [1])

    def test_it_need_not(self):
        server = self.serve("--preferred-address", preferred(), "--stats")
        self.assertEqual(self.fetch(server, "--no-preferred-address").stat("migrations"), 0)
        self.assertEqual(self.served_moves(server), [0])

    def test_one_socket_has_both_addresses_of_a_port(self):
        at = preferred()
        server = self.serve("--preferred-address", at, "--stats", listen=":" + at.split(":")[1])
        self.put("file", os.urandom(SIZE))
        done = get(f"https://127.0.0.1:{server.port}/file", *SLOW, "-o", self.target())
        self.assert_code(done, OK)
        self.assertEqual(self.read(), self.read_served("file"))
        self.assertEqual(done.stat("migrations"), 1)
        self.assertEqual(self.served_moves(server), [1])

    @unittest.skipUnless(has_ipv6(), "this machine has no IPv6 on loopback")
    def test_each_family_has_its_own(self):
        server = self.serve("--preferred-address", preferred(), "--preferred-address",
                            f"[::1]:{free_port()}", "--stats", listen="[::1]:0")
        self.assertEqual(self.fetch(server).stat("migrations"), 1)
        self.assertEqual(self.served_moves(server), [1])

    def test_a_client_migrates(self):
        for options in ([], ["--retry"], ["--preferred-address", preferred()]):
            with self.subTest(options=options):
                server = self.serve("--stats", *options)
                moves = self.fetch(server, "--migrate", "0").stat("migrations")
                served = self.served_moves(server)
                self.assertEqual(len(served), 1)
                if "--preferred-address" in options:  # one way or the other, whichever was first
                    self.assertGreaterEqual(moves, 1)
                    self.assertGreaterEqual(served[0], 1)
                else:
                    self.assertEqual((moves, served[0]), (1, 1))

    def test_a_preferred_address_that_is_taken_is_an_error(self):
        server = self.serve()
        done = run("serve", "--listen", "127.0.0.1:0", "--preferred-address", server.address)
        self.assert_code(done, ADDRESS)
        self.assertIn(f"cannot listen on {server.address}", done.err)


if __name__ == "__main__":
    main()
