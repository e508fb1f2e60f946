#!/bin/sh
# backports.sh OUT: unpacks the ngtcp2 of this Debian's backports below OUT, for bench/peers/ngtcp2.py and
# rates.py to run beside the one that is installed. Where to ask follows from the machine's own apt sources,
# with the release's name and "-backports" for the suite; packages are checked by apt as always. Nothing is
# installed, and nothing of the machine's apt is changed. Nothing is done when OUT is there.
set -eu
out=$1
[ ! -d "$out/usr" ] || exit 0

# shellcheck disable=SC1091 # the machine's
. /etc/os-release
apt=$(mktemp -d "${TMPDIR:-/tmp}/leat-backports.XXXXXX")
trap 'rm -rf "$apt"' EXIT
chmod 755 "$apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs"

# The first entry that has the release itself: one of deb822's paragraphs, or one line.
suite=$VERSION_CODENAME
for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk -v suite="$suite" 'BEGIN { RS = ""; FS = "\n" }
        { for (i = 1; i <= NF; i++)
              if ($i ~ "^Suites:.*[ \t]" suite "([ \t]|$)") {
                  $i = "Suites: " suite "-backports"
                  for (j = 1; j <= NF; j++) if ($j !~ /^#/) print $j
                  exit
              } }' "$file" >"$apt/from.sources"
    [ ! -s "$apt/from.sources" ] || break
done
list=$apt/from.sources
if [ ! -s "$list" ] && [ -f /etc/apt/sources.list ]; then
    list=$apt/from.list
    awk -v suite="$suite" '$1 == "deb" { for (i = 2; i < NF; i++) if ($i == suite) {
        $i = suite "-backports"; print; exit } }' /etc/apt/sources.list >"$list"
fi
[ -s "$list" ] || { echo "backports.sh: no apt source of $suite was found" >&2; exit 1; }

# apt COMMAND ARG…: a state of its own.
apt() {
    apt-get -q -o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@"
}

apt update >"$apt/log" 2>&1 || { cat "$apt/log" >&2; exit 1; }
names=$(cd "$apt/debs" && apt-cache -o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" depends ngtcp2-server ngtcp2-client |
    sed -n 's/^ *Depends: \(lib\(ngtcp2\|nghttp3\).*\)$/\1/p' | sort -u)
# shellcheck disable=SC2086 # several names
(cd "$apt/debs" && apt download ngtcp2-server ngtcp2-client $names) >"$apt/log" 2>&1 ||
    { cat "$apt/log" >&2; exit 1; }
mkdir -p "$out.new"
for deb in "$apt"/debs/*.deb; do
    dpkg-deb -x "$deb" "$out.new"
    # shellcheck disable=SC2016 # dpkg-deb's fields
    dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb" >>"$out.new/versions"
done
mv "$out.new" "$out"
