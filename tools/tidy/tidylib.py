"""What the checks written in Python share: finding C files, blanking comments, exceptions, reports.

Every check is `check-NAME [--root DIR]`. DIR is the tree to look at: this repository, or one of the
fixtures, whose faults the check must find (see `run`).
"""

import argparse
import os
import re
import sys

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Check:
    """One run of a check: collects faults as `path:line: text`, applies exceptions, reports."""

    def __init__(self, name):
        parser = argparse.ArgumentParser(prog="check-" + name)
        parser.add_argument("--root", default=REPO)
        self.name = name
        self.root = os.path.abspath(parser.parse_args().root)
        self.in_repo = self.root == REPO
        self.faults = []
        self.looked = 0
        self.exceptions = self._read_exceptions()

    def _read_exceptions(self):
        """Rows of exceptions.txt for this check: (path, token) -> used yet?"""
        rows = {}
        if not self.in_repo:
            return rows
        path = os.path.join(REPO, "tools/tidy/exceptions.txt")
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line, _, reason = line.partition("#")
                fields = line.split()
                if not fields:
                    continue
                if len(fields) != 3 or not reason.strip():
                    sys.exit(f"{path}:{number}: want 'check path token # reason'")
                if fields[0] == self.name:
                    rows[(fields[1], fields[2])] = False
        return rows

    def files(self, *folders, suffixes=(".c", ".h")):
        """Paths under the root of all C files in the folders, sorted."""
        found = []
        for folder in folders:
            for where, _, names in os.walk(os.path.join(self.root, folder)):
                for name in names:
                    if name.endswith(suffixes):
                        found.append(os.path.relpath(os.path.join(where, name), self.root))
        self.looked += len(found)
        return sorted(found)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def allowed(self, path, token):
        if (path, token) in self.exceptions:
            self.exceptions[(path, token)] = True
            return True
        return False

    def fault(self, path, line, text, token=None):
        if token is None or not self.allowed(path, token):
            self.faults.append(f"{path}:{line}: {text}")

    def finish(self):
        for (path, token), used in self.exceptions.items():
            if not used:
                self.faults.append(f"exceptions.txt: no longer needed: {self.name} {path} {token}")
        for fault in self.faults:
            print(fault)
        if self.looked == 0:
            print(f"check-{self.name}: found nothing to look at under {self.root}")
        sys.exit(1 if self.faults or self.looked == 0 else 0)


_NOT_CODE = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X)


def blank(text, keep_strings=False):
    """The text with comments (and strings) replaced by spaces: lines and columns stay."""

    def spaces(match):
        found = match.group()
        if keep_strings and found[0] in "\"'":
            return found
        return re.sub(r"[^\n]", " ", found)

    return _NOT_CODE.sub(spaces, text)


def tokens(text):
    """(line, identifier, what stands before it, what stands after it) for each identifier in code.

    Before and after are the nearest characters that are not spaces. Preprocessor lines other than
    #define count as no code.
    """
    code = re.sub(r"^[ \t]*#(?![ \t]*define\b)(?:[^\n]*\\\n)*[^\n]*$",
                  lambda m: re.sub(r"[^\n]", " ", m.group()), blank(text), flags=re.M)
    for match in re.finditer(r"[A-Za-z_]\w*", code):
        before = code[max(0, match.start() - 80):match.start()].rstrip()[-2:]
        after = code[match.end():match.end() + 80].lstrip()[:1]
        yield code.count("\n", 0, match.start()) + 1, match.group(), before, after


def is_member(before):
    """Whether the identifier after these characters is a member: x.free, x->free, {.free = …}."""
    return before.endswith(".") or before.endswith("->")
