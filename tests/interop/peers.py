"""What the interop tests share: leat and ngtcp2 as processes, certificates, files, and a place for
all of it that stays when a test fails.

Nothing sleeps to let something happen: a test waits for a line of output, for a process's end, or
for the socket of a server that prints nothing.

SPDX-License-Identifier: MIT
"""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LEAT = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "leat"
PATIENCE = 120  # seconds after which a process is taken to hang
TAIL = 30       # lines of each log shown when a test fails

# The names that leat, GnuTLS and the TLS registry have for QUIC's ciphers.
CIPHERS = {
    "aes-128-gcm": ("AES-128-GCM", "TLS_AES_128_GCM_SHA256"),
    "aes-256-gcm": ("AES-256-GCM", "TLS_AES_256_GCM_SHA384"),
    "chacha20-poly1305": ("CHACHA20-POLY1305", "TLS_CHACHA20_POLY1305_SHA256"),
}


def program(name):
    """A program's path; the packages' servers stand in /usr/sbin, which is not on every PATH."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if path is None:
        raise AssertionError(f"{name} is not installed: run 'make setup'")
    return path


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def random_file(path, size):
    """Writes so many random bytes; returns their SHA-256."""
    digest = hashlib.sha256()
    with open(path, "wb") as f:
        while size > 0:
            block = os.urandom(min(size, 1 << 20))
            digest.update(block)
            f.write(block)
            size -= len(block)
    return digest.hexdigest()


class Process:
    """A program whose output, both kinds in one, goes to a log file and can be waited for."""

    def __init__(self, log_path, command, env=None):
        clean = {k: v for k, v in os.environ.items() if k not in ("SSLKEYLOGFILE", "QLOGDIR")}
        self.name = os.path.basename(log_path)
        self.lines = []
        self.changed = threading.Condition()
        self.ended = False
        with open(log_path, "w") as log:
            log.write("$ " + " ".join(command) + "\n")
        self.log = open(log_path, "a")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=clean | (env or {}), start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def pid(self):
        return self.process.pid

    def _read(self):
        for line in self.process.stdout:
            self.log.write(line)
            self.log.flush()
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def text(self):
        with self.changed:
            return "".join(self.lines)

    def find(self, pattern):
        return re.search(pattern, self.text(), re.M)

    def wait_line(self, pattern, patience=PATIENCE):
        """Waits until a line matches; returns the match."""
        deadline = time.monotonic() + patience
        seen = 0
        with self.changed:
            while True:
                for line in self.lines[seen:]:
                    found = re.search(pattern, line)
                    if found:
                        return found
                seen = len(self.lines)
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    why = "ended" if self.ended else f"did not within {patience} s"
                    raise AssertionError(f"{self.name}: no line like /{pattern}/: it {why}")
                self.changed.wait(left)

    def wait(self, patience=PATIENCE):
        """The exit status; fails when the process does not end."""
        try:
            status = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name}: still running after {patience} s") from None
        self.reader.join(patience)
        return status

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # a script's own processes, too
            self.process.wait()
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.log.close()


def sockets(pid):
    """The inodes of the sockets of a process and of those that it has started, from /proc."""
    inodes = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            for child in f.read().split():
                inodes |= sockets(child)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return inodes


def udp_ports(pid):
    """The local UDP ports of a process and of those that it has started."""
    inodes = sockets(pid)
    ports = []
    for table in ("udp", "udp6"):
        with open(f"/proc/{pid}/net/{table}") as f:
            for row in list(f)[1:]:
                fields = row.split()
                if fields[9] in inodes:
                    ports.append(int(fields[1].rsplit(":", 1)[1], 16))
    return [port for port in ports if port]


def wait_udp_port(process, but=None):
    """The port that a server bound which says nothing about it, another than `but`. There is no event
    to wait for, so this looks until it is there."""
    deadline = time.monotonic() + PATIENCE
    while process.process.poll() is None and time.monotonic() < deadline:
        ports = [port for port in udp_ports(process.pid) if port != but]
        if ports:
            return ports[0]
        process.reader.join(0.01)
    raise AssertionError(f"{process.name}: it does not listen")


class Case(unittest.TestCase):
    """A folder with www/, got/, certificates and logs. Processes end with the test; the folder goes
    when the test passed, and is named when it failed."""

    longMessage = True

    def run(self, result=None):
        result = result or self.defaultTestResult()
        before = len(result.failures) + len(result.errors)
        self.dir = tempfile.mkdtemp(prefix=f"leat-interop.{self._testMethodName}.")
        self.processes = []
        self.serial = 0
        super().run(result)
        for process in self.processes:
            process.kill()
        if len(result.failures) + len(result.errors) == before:
            shutil.rmtree(self.dir)
        else:
            self.show_logs()

    def show_logs(self):
        for name in sorted(os.listdir(self.dir)):
            if name.endswith(".log"):
                with open(os.path.join(self.dir, name), errors="replace") as f:
                    lines = f.readlines()
                print(f"---- {name}: {len(lines)} lines, the first and the last {TAIL}")
                sys.stdout.writelines(lines[:1] + lines[1:][-TAIL:])
        print(f"---- everything of {self.id()} is kept in {self.dir}", flush=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def setUp(self):
        os.mkdir(self.path("www"))
        os.mkdir(self.path("got"))

    def start(self, name, command, env=None):
        self.serial += 1
        process = Process(self.path(f"{self.serial:02}-{name}.log"), command, env)
        self.processes.append(process)
        return process

    # ---- certificates ---------------------------------------------------------------------------

    def certtool(self, *args):
        done = subprocess.run([program("certtool"), *args], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, f"certtool {' '.join(args)}: {done.stdout}")

    def make_key(self, name):
        self.certtool("--generate-privkey", "--key-type=ecdsa", "--curve=secp256r1",
                      "--outfile", self.path(f"{name}.key"))

    def make_certificates(self):
        """An authority, and a certificate of it for localhost and 127.0.0.1: ca.pem, server.pem with
        the chain, server.key."""
        with open(self.path("ca.cfg"), "w") as f:
            f.write('cn = "leat test authority"\nca\ncert_signing_key\nexpiration_days = 30\n')
        with open(self.path("server.cfg"), "w") as f:
            f.write('cn = "localhost"\ndns_name = "localhost"\nip_address = "127.0.0.1"\n'
                    "tls_www_server\nsigning_key\nexpiration_days = 30\n")
        for name in ("ca", "server"):
            self.make_key(name)
        self.certtool("--generate-self-signed", "--template", self.path("ca.cfg"),
                      "--load-privkey", self.path("ca.key"), "--outfile", self.path("ca.pem"))
        self.certtool("--generate-certificate", "--template", self.path("server.cfg"),
                      "--load-privkey", self.path("server.key"),
                      "--load-ca-certificate", self.path("ca.pem"),
                      "--load-ca-privkey", self.path("ca.key"),
                      "--outfile", self.path("server.pem"))

    # ---- the two implementations ----------------------------------------------------------------

    def leat_server(self, *options, env=None, wrap=()):
        """Starts `leat serve` on www/; returns its process and port."""
        server = self.start("leat-serve", [
            *wrap, LEAT, "serve", self.path("www"), "--listen", "127.0.0.1:0",
            "--cert", self.path("server.pem"), "--key", self.path("server.key"), "--stats",
            *options], env)
        return server, int(server.wait_line(r"^listening on \S*:(\d+)$").group(1))

    def leat_get(self, port, files, *options, env=None, verify=True, to="got"):
        """Starts `leat get`; verifies against the test's authority unless told not to."""
        trust = ["--ca", self.path("ca.pem")] if verify else ["--insecure"]
        urls = [f"https://localhost:{port}/{name}" for name in files]
        return self.start("leat-get", [
            LEAT, "get", *urls, "--connect-to", f"127.0.0.1:{port}", "-O",
            "--output-dir", self.path(to), "--stats", *trust, *options], env)

    def ngtcp2_server(self, *options, quiet=True, env=None):
        server = self.start("gtlsserver", [
            program("gtlsserver"), *(["-q"] if quiet else []), *options, "-d", self.path("www"),
            "--no-quic-dump", "--no-http-dump", "127.0.0.1", "0", self.path("server.key"),
            self.path("server.pem")], env)
        return server, wait_udp_port(server)

    def ngtcp2_get(self, port, files, *options, quiet=True, env=None, to="got"):
        """Starts gtlsclient. Its exit status says nothing: judge by the files and the log."""
        return self.start("gtlsclient", [
            program("gtlsclient"), *(["-q"] if quiet else []), *options, "127.0.0.1", str(port),
            *[f"https://localhost/{name}" for name in files], "--exit-on-all-streams-close",
            "--no-quic-dump", "--no-http-dump", f"--download={self.path(to)}"], env)

    # ---- what must hold -------------------------------------------------------------------------

    def put(self, name, size):
        return random_file(self.path(f"www/{name}"), size)

    def assert_same(self, name, digest, to="got"):
        path = self.path(f"{to}/{name}")
        self.assertTrue(os.path.exists(path), f"{name} did not arrive")
        size, whole = os.path.getsize(path), os.path.getsize(self.path(f"www/{name}"))
        self.assertEqual(size, whole, f"{name} arrived with {size} of {whole} bytes")
        self.assertEqual(sha256(path), digest, f"{name} arrived with other bytes")

    def assert_fetched(self, client, digests, to="got"):
        """The client has ended well, and each file is the same at both ends. Takes the files away, so
        that they prove nothing of the next client."""
        self.assertEqual(client.wait(), 0, f"{client.name} failed")
        for name, digest in digests.items():
            self.assert_same(name, digest, to)
            os.unlink(self.path(f"{to}/{name}"))

    def assert_stops(self, server):
        self.assertEqual(server.stop(), 0, f"{server.name} did not end well")

    def stat(self, process, name):
        """A line of --stats, of the last connection there is."""
        found = re.findall(rf"^ *{name}: *([0-9.]+)", process.text(), re.M)
        self.assertTrue(found, f"{process.name} prints no {name}")
        return float(found[-1])


def main():
    program("gtlsclient")
    program("gtlsserver")
    unittest.main(verbosity=2)
