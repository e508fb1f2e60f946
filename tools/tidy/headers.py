"""What the public headers declare, as clang sees it. Used by check-names and check-exports."""

import json
import os
import re
import subprocess
import sys


def _clang(root, header, *options):
    """clang's output for a file that includes nothing but <leat/header>."""
    command = ["clang", "-std=c11", "-I", os.path.join(root, "include"), "-x", "c", *options, "-"]
    run = subprocess.run(command, input=f"#include <leat/{header}>\n", text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode != 0:
        sys.exit(f"<leat/{header}> does not compile alone:\n{run.stderr}")
    return run.stdout


def _walk(node, here, found):
    """Declarations of one level; clang gives a file's name only where it changes."""
    for child in node.get("inner", ()):
        loc = child.get("loc", {})
        spots = [loc, loc.get("spellingLoc", {}), loc.get("expansionLoc", {})]
        for spot in spots:
            here["file"] = spot.get("file", here["file"])
            here["line"] = spot.get("line", here["line"])
        at = (here["file"], here["line"])
        for end in ("begin", "end"):
            spot = child.get("range", {}).get(end, {})
            for part in (spot, spot.get("spellingLoc", {}), spot.get("expansionLoc", {})):
                here["file"] = part.get("file", here["file"])
                here["line"] = part.get("line", here["line"])
        kind = child.get("kind", "")
        if child.get("name") and not child.get("isImplicit"):
            if kind == "FunctionDecl" and child.get("storageClass") == "static":
                kind = "static FunctionDecl"
            found.append((kind, child["name"], *at))
        # Enumerators live in their enum, and C's nested tags are visible outside: look into both.
        # Other children (parameters, members, bodies) are read for the file's name alone.
        _walk(child, here, found if kind in ("EnumDecl", "RecordDecl") else [])


def declarations(root, header):
    """[(kind, name, file, line)] of what the header and those it includes declare in include/leat."""
    tree = json.loads(_clang(root, header, "-fsyntax-only", "-Xclang", "-ast-dump=json"))
    found = []
    _walk(tree, {"file": "", "line": 0}, found)
    inside = os.path.join(root, "include/leat") + os.sep
    return [row for row in found if row[2].startswith(inside) and row[0] != "FieldDecl"]


def macros(root, header):
    """[(name, file, line)] of the macros that are defined in include/leat."""
    inside = os.path.join(root, "include/leat") + os.sep
    file, line, found = "", 0, []
    for text in _clang(root, header, "-E", "-dD").splitlines():
        marker = re.match(r'# (\d+) "([^"]*)"', text)
        if marker:
            line, file = int(marker.group(1)) - 1, marker.group(2)
            continue
        line += 1
        define = re.match(r"#define (\w+)", text)
        if define and file.startswith(inside):
            found.append((define.group(1), file, line))
    return found
