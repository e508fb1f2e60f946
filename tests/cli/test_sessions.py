"""Sessions in a file: resumed, asked by 0-RTT, and never a reason to fail.

SPDX-License-Identifier: MIT
"""
import os
import re

from harness import FILE, OK, Case, get, main, run

PROTOCOLS = ("h3", "hq-interop")


class Sessions(Case):
    def setUp(self):
        super().setUp()
        self.data = os.urandom(30000)
        self.put("file", self.data)

    def fetch(self, server, *options, host="127.0.0.1", code=OK):
        done = get(server.url("/file", host), "-k", "--session-file", self.target("session"),
                   "--stats", "-o", self.target(), *options)
        self.assert_code(done, code)
        if code == OK:
            self.assertEqual(self.read(), self.data)
        return done

    def assert_said(self, done, resumed, early):
        self.assertRegex(done.err, rf"(?m)^\s*resumed\W+{resumed}\b")
        self.assertRegex(done.err, rf"(?m)^\s*early_data\W+{early}\b")

    def test_each_protocol_resumes_and_asks_early(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol=protocol):
                server = self.serve("--early-data")
                self.assert_said(self.fetch(server, "--alpn", protocol), "no", "none")
                for _ in range(3):
                    self.assert_said(self.fetch(server, "--alpn", protocol), "yes", "accepted")
                self.assert_said(self.fetch(server, "--alpn", protocol, "--no-early-data"), "yes",
                                 "none")
                os.unlink(self.target("session"))

    def test_session_file_is_for_its_owner(self):
        server = self.serve()
        self.fetch(server)
        self.assertEqual(os.stat(self.target("session")).st_mode & 0o777, 0o600)

    def test_server_that_takes_no_early_data(self):
        server = self.serve()
        self.fetch(server)
        self.assert_said(self.fetch(server), "yes", "none")

    def test_early_data_and_retry(self):
        server = self.serve("--early-data", "--retry")
        self.fetch(server)
        self.assert_said(self.fetch(server), "yes", "accepted")

    def test_ticket_key_outlives_the_server(self):
        options = ["--early-data", "--ticket-key", self.target("key")]
        server = self.serve(*options)
        self.fetch(server)
        self.assertEqual(os.path.getsize(self.target("key")), 64)
        self.assertEqual(os.stat(self.target("key")).st_mode & 0o777, 0o600)
        server.stop()
        server = self.serve(*options)
        self.assert_said(self.fetch(server), "yes", "rejected")
        self.assert_said(self.fetch(server), "yes", "accepted")

    def test_session_of_another_host_or_a_damaged_one_is_passed_over(self):
        server = self.serve("--early-data")
        self.fetch(server)
        self.assert_said(self.fetch(server, host="localhost"), "no", "none")
        with open(self.target("session"), "r+b") as f:
            f.seek(100)
            f.write(b"?")
        done = self.fetch(server, host="localhost")
        self.assert_said(done, "no", "none")
        self.assertIn(f"warning: the session in {self.target('session')} is damaged: a new one begins", done.err)
        self.assertNotIn("damaged", self.fetch(server, host="localhost").err)
        with open(self.target("session"), "wb"):
            pass  # as mktemp leaves it
        self.assert_said(self.fetch(server), "no", "none")
        self.assert_said(self.fetch(server), "yes", "accepted")

    def test_early_data_to_a_name_whose_first_address_does_not_answer(self):
        server = self.serve("--early-data")  # localhost may be ::1 first: nobody is there
        self.fetch(server, host="localhost")
        # Rejected: each address is tried for a short time at first, and a busy server that was slower
        # than that takes the second attempt with the same ticket for a replay.
        self.assert_said(self.fetch(server, host="localhost"), "yes", "(accepted|rejected)")

    def test_a_file_that_is_no_session_is_left_alone(self):
        server = self.serve()
        with open(self.target("session"), "wb") as f:
            f.write(b"dear diary")
        done = self.fetch(server, code=FILE)
        self.assertIn("no session file", done.err)
        self.assertEqual(self.read("session"), b"dear diary")

    def test_a_session_file_with_a_long_name_or_behind_a_link(self):
        server = self.serve()
        os.symlink("n" * 255, self.target("session"))
        self.fetch(server)
        self.assertTrue(os.path.islink(self.target("session")))
        self.assert_said(self.fetch(server), "yes", "none")

    def test_files_that_cannot_be_used(self):
        server = self.serve()
        os.mkdir(self.target("session"))
        done = self.fetch(server, code=FILE)
        self.assertIn("session", done.err)
        with open(self.target("key"), "wb") as f:
            f.write(b"too short")
        done = run("serve", "--listen", "127.0.0.1:0", "--ticket-key", self.target("key"))
        self.assert_code(done, FILE)
        self.assertTrue(re.search(r"64 bytes", done.err))


if __name__ == "__main__":
    main()
