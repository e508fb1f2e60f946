"""Answers that leat's own server never gives.

SPDX-License-Identifier: MIT
"""
import os
import pty
import subprocess
import sys

SERVER = os.path.abspath(sys.argv.pop(2))

from harness import BROKEN, LEAT, OK, STATUS, Case, environment, get, main  # noqa: E402


class Odd(Case):
    def setUp(self):
        super().setUp()
        server = subprocess.Popen([SERVER], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.url, self.raw_url = (f"https://127.0.0.1:{int(server.stdout.readline())}" for _ in range(2))

    def test_a_part_is_not_taken_for_the_file(self):
        done = get(self.url + "/206", "-k", "-o", self.target())
        self.assert_code(done, STATUS)
        self.assertIn("206, a part", done.err)
        self.assert_nothing_left()

    def test_an_answer_that_is_not_well_formed_is_told_so(self):
        done = get(self.raw_url + "/file", "-k", "-o", self.target())
        self.assert_code(done, BROKEN)
        self.assertIn("/file: the transfer broke: what the server answered is not well formed", done.err)
        self.assert_nothing_left()

    def test_bytes_that_a_terminal_might_act_on_are_not_shown_on_one(self):
        done = get(self.url + "/bytes", "-k", "-I")  # a pipe
        self.assert_code(done, OK)
        self.assertIn(b"x-odd: \xc4\x9b2J\xff\n", done.out)
        terminal, end = pty.openpty()
        client = subprocess.Popen([LEAT, "get", self.url + "/bytes", "-k", "-I"], stdout=end,
                                  env=environment())
        os.close(end)
        seen = b""
        try:
            while block := os.read(terminal, 4096):
                seen += block
        except OSError:  # the terminal's other end is closed
            pass
        os.close(terminal)
        self.assertEqual(client.wait(60), OK)
        self.assertIn(b"x-odd: ??2J?", seen)


if __name__ == "__main__":
    main()
