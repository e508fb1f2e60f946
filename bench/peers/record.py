"""What the benches that run two processes write beside their figures: the machine, the time, a section.

SPDX-License-Identifier: MIT
"""
import os
import platform
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def now():
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def machine():
    model = "?"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/etc/os-release", encoding="utf-8") as f:
        system = dict(line.strip().split("=", 1) for line in f if "=" in line)
    name = system.get("PRETTY_NAME", "?").strip('"')
    return f"{os.cpu_count()} cores of {model}, {name}, Linux {platform.release()}"


def cpu_of(process):
    """CPU seconds of a process so far, of all its threads."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write(path, mark, text):
    """Replaces the section of a file that `mark` wrote, or appends it."""
    begin, end = f"<!-- begin: {mark} -->", f"<!-- end: {mark} -->"
    section = f"{begin}\n{text}\n{end}\n"
    old = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = f.read()
    if begin in old and end in old:
        before, rest = old.split(begin, 1)
        new = before + section + rest.split(end, 1)[1].lstrip("\n")
    else:
        new = (old.rstrip("\n") + "\n\n" if old else "# Benchmarks\n\n") + section
    with open(path, "w", encoding="utf-8") as f:
        f.write(new)
