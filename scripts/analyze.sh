#!/bin/bash
# analyze.sh [BUILD [PART]]: gcc's static analyzer (-fanalyzer) over src/, cli/ and examples/. BUILD has a
# compile_commands.json made for gcc (build/debug, which is configured first). What it says wrongly is in
# analyze.txt, each row with a reason; a row that no longer fits anything is a fault, too.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/debug}
part=${2:-}
[ -n "${1:-}" ] || cmake --preset debug --log-level=WARNING || exit 1
exec python3 - "$build" "$part" <<'PY'
import concurrent.futures, json, os, re, shlex, subprocess, sys

build, part = sys.argv[1:]
root = os.getcwd()
rows = []
for line in open("scripts/analyze.txt", encoding="utf-8"):
    if line.strip() and not line.startswith("#"):
        name, flag, piece = line.split("  #")[0].strip().split(None, 2)
        rows.append((name, flag, piece))
commands = {}
for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
    name = os.path.relpath(entry["file"], root)
    if re.match(r"(src|cli|examples|tools)/", name) and part in name:
        commands.setdefault(name, entry)


def analyze(item):
    name, entry = item
    args = shlex.split(entry["command"])
    args = args[1:] if os.path.basename(args[0]) == "ccache" else args
    args = [a for a in args if not a.startswith(("-fsanitize", "--coverage", "-Werror", "-fprofile"))]
    out = args.index("-o")
    args = args[:out] + args[out + 2:] + ["-o", os.devnull, "-O1", "-fanalyzer", "-fdiagnostics-plain-output",
                                          "-fanalyzer-transitivity"]
    done = subprocess.run(args, cwd=entry["directory"], stderr=subprocess.PIPE, text=True)
    found = re.findall(r"^(\S+?):(\d+):\d+: warning: (.*) \[(?:CWE-\d+\] \[)?(-Wanalyzer\S+)\]", done.stderr,
                       re.M)
    if done.returncode != 0:
        found.append((name, "0", "does not compile: " + done.stderr[:500], "-Werror"))
    return [(os.path.relpath(os.path.join(entry["directory"], f), root), int(n), text, flag)
            for f, n, text, flag in found]


used, faults = set(), set()
with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
    for found in pool.map(analyze, sorted(commands.items())):
        for f, n, text, flag in found:
            line = open(f, encoding="utf-8").read().split("\n")[n - 1].strip() if n else ""
            row = next((r for r in rows if r[0] == f and r[1] == flag and r[2] in line), None)
            if row:
                used.add(row)
            else:
                faults.add(f"{f}:{n}: {text} [{flag}]\n    {line}")
if not part:
    faults |= {"analyze.txt: a row that is not needed: " + " ".join(row) for row in rows if row not in used}
for fault in sorted(faults):
    print(fault)
print(f"analyze: {len(commands)} files, {len(faults)} faults")
sys.exit(1 if faults or not commands else 0)
PY
