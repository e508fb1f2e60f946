#!/usr/bin/env python3
"""limits.py [--check | --write] FILE: the table of include/leat/limits.h in a Markdown file.

Between the lines `<!-- limits -->` and `<!-- /limits -->` stands one row for each limit. --check
fails when they differ from the header; --write puts them right."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- limits -->\n", "<!-- /limits -->\n"


def rows(header):
    text = re.sub(r"/\*.*?\*/", "", header.replace("\\\n", "\n"), flags=re.S)
    found = re.findall(r'X\((\w+), (\d+), (\d+), (\d+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', text)
    for name, default, least, most, reason in found:
        yield name, default, least, most, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', reason))


def table():
    header = (root / "include/leat/limits.h").read_text()
    listed = list(rows(header))
    if len(listed) != header.count("    X("):
        sys.exit("limits.py: a row of limits.h cannot be read")
    lines = ["| limit | default | least | most | what, and why |", "| --- | --- | --- | --- | --- |"]
    lines += ["| `%s` | %s | %s | %s | %s |" % row for row in listed]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--write"):
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[2])
    text = path.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table() + END + after
    if sys.argv[1] == "--write":
        path.write_text(wanted)
    elif text != wanted:
        sys.exit("%s: the limits are not those of include/leat/limits.h: tools/limits.py --write %s"
                 % (path, path))


main()
