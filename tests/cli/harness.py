"""What the tests of the command share: a server to talk to, a link to spoil, a way to run `leat get`.

No sleeps: a test waits for the server's `listening` line, for a process to end, or for the link to tell
that it has done something.

SPDX-License-Identifier: MIT
"""
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

LEAT = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "leat"
PATIENCE = 120  # seconds after which a process is taken to hang

OK, FAILURE, USAGE, NOT_FOUND, STATUS, FILE, ADDRESS, TIMEOUT, CERTIFICATE, BROKEN, MEMORY = range(11)
INTERRUPTED = 130


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def environment(**extra):
    env = {k: v for k, v in os.environ.items() if k not in ("SSLKEYLOGFILE", "QLOGDIR")}
    env.update(extra)
    return env


class Server:
    """`leat serve`, from its listening line to its end."""

    def __init__(self, folder, *options, listen="127.0.0.1:0", env=None, limit=None):
        self.log = []
        self.told = threading.Condition()
        self.process = subprocess.Popen(
            [LEAT, "serve", folder, "--listen", listen, *options],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace",
            env=env or environment(), preexec_fn=limit)
        self.address = None
        for line in self.process.stderr:
            self.log.append(line)
            found = re.match(r"listening on (\S+)", line)
            if found:
                self.address = found.group(1)
                break
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if self.address is None:
            self.process.wait(PATIENCE)
            raise AssertionError("the server did not start: " + "".join(self.log))
        self.port = int(self.address.rsplit(":", 1)[1])

    def _read(self):
        for line in self.process.stderr:
            with self.told:
                self.log.append(line)
                self.told.notify_all()

    def wait_for(self, text):
        """Waits until the server has told this."""
        with self.told:
            if not self.told.wait_for(lambda: text in self.text(), PATIENCE):
                raise AssertionError(f"the server does not say '{text}': " + self.text())

    def url(self, path, host=None):
        return f"https://{host}:{self.port}{path}" if host else f"https://{self.address}{path}"

    def stop(self, number=signal.SIGTERM):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stderr.close()
        return status

    def text(self):
        return "".join(self.log)


class Link:
    """A UDP relay between a client and a server that stops passing the server's datagrams after so many
    bytes, and goes on when told; or drops each so-many-th of them; or, after so many bytes, those that are
    larger than so much."""

    def __init__(self, port, stop_after=None, drop_each=None, hole=None):
        self.server = ("127.0.0.1", port)
        self.stop_after = stop_after
        self.drop_each = drop_each
        self.hole = hole  # (after, larger than)
        self.count = 0
        self.passed = 0
        self.stopped = threading.Event()
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for sock in (self.front, self.back):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            sock.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        self.client = None
        self.ended = False
        for loop in (self._up, self._down):
            threading.Thread(target=loop, daemon=True).start()

    def _up(self):
        while not self.ended:
            try:
                data, client = self.front.recvfrom(65536)
                if client:  # none when the socket was shut down
                    self.client = client
                    self.back.sendto(data, self.server)
            except OSError:
                return

    def _down(self):
        while not self.ended:
            try:
                data, sender = self.back.recvfrom(65536)
                if not sender:
                    continue
                if self.stop_after is not None and self.passed >= self.stop_after:
                    self.stopped.set()
                    continue
                self.passed += len(data)
                self.count += 1
                if self.drop_each and self.count % self.drop_each == 0:
                    continue
                if self.hole and self.passed > self.hole[0] and len(data) > self.hole[1]:
                    continue
                self.front.sendto(data, self.client)
            except OSError:
                return

    def go_on(self):
        self.stop_after = None

    def close(self):
        self.ended = True
        for sock in (self.front, self.back):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def stat(self, name):
        found = re.search(rf"^ *{name}: *([0-9.]+)", self.err, re.M)
        return float(found.group(1)) if found else None


def start_get(*args, env=None, **kwargs):
    return subprocess.Popen([LEAT, "get", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=env or environment(), **kwargs)


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    return Result(process.returncode, out, err.decode(errors="replace"))


def get(*args, **kwargs):
    return finish(start_get(*args, **kwargs))


def run(*args):
    done = subprocess.run([LEAT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=PATIENCE, env=environment())
    return Result(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


class Case(unittest.TestCase):
    """A folder to serve, a folder to fetch into, and servers that end with the test."""

    longMessage = True

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="leat-cli.")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.www = os.path.join(self.dir, "www")
        self.got = os.path.join(self.dir, "got")
        os.mkdir(self.www)
        os.mkdir(self.got)

    def put(self, name, data, folder=None):
        path = os.path.join(folder or self.www, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def serve(self, *options, **kwargs):
        server = Server(self.www, *options, **kwargs)
        self.addCleanup(server.stop, signal.SIGKILL)
        return server

    def link(self, server, *args, **kwargs):
        link = Link(server.port, *args, **kwargs)
        self.addCleanup(link.close)
        return link

    def target(self, name="file"):
        return os.path.join(self.got, name)

    def assert_code(self, result, code):
        self.assertEqual(result.code, code, result.err)

    def assert_nothing_left(self):
        """A download that failed leaves nothing, whole or in parts."""
        self.assertEqual(os.listdir(self.got), [])

    def read(self, name="file"):
        with open(self.target(name), "rb") as f:
            return f.read()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
        return True
    except OSError:
        return False


def main():
    unittest.main(verbosity=2)
