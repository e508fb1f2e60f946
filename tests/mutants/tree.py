"""A copy of the tree with one small fault in it: what tests/mutants/run.py and tests/sim/mutants.py share.

A fault is one text in one file that becomes another. The copy has a build folder of its own, in which only what
the fault touches is built again.
"""

import contextlib
import os
import subprocess
import sys


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **more)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    """Always a new time: what was built from another text is older."""
    with open(path, "wb") as file:
        file.write(data)


class Tree:
    """work/tree and work/build. What `source` has checked in, as it stands there now, is brought over."""

    def __init__(self, work, source, options):
        self.root, self.build = os.path.join(work, "tree"), os.path.join(work, "build")
        names = run(["git", "-C", source, "ls-files", "-z"], check=True).stdout.split("\0")
        for name in filter(None, names):
            here, there = os.path.join(source, name), os.path.join(self.root, name)
            if os.path.isfile(here) and not (os.path.isfile(there) and read(there) == read(here)):
                os.makedirs(os.path.dirname(there), exist_ok=True)
                write(there, read(here))
                os.chmod(there, os.stat(here).st_mode)
        if not os.path.isfile(os.path.join(self.build, "build.ninja")):
            done = run(["cmake", "-S", self.root, "-B", self.build, "-G", "Ninja"] + options)
            if done.returncode:
                sys.exit(done.stdout + done.stderr)

    def make(self, *targets):
        """None, or what went wrong."""
        done = run(["ninja", "-C", self.build] + list(targets))
        if done.returncode:
            wrong = [line for line in done.stdout.splitlines() if "error" in line] or [done.stdout[-500:]]
            return wrong[0]
        return None

    @contextlib.contextmanager
    def fault(self, path, before, after):
        """While it holds the fault is there. Yields None, or why it could not be put in."""
        path = os.path.join(self.root, path)
        good = read(path)
        count = good.count(before.encode())
        if count != 1:
            yield "its text is there %d times" % count
            return
        try:
            write(path, good.replace(before.encode(), after.encode()))
            yield None
        finally:
            write(path, good)
