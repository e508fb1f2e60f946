#!/bin/sh
# build.sh OUT: builds the quic-go peer by Debian's Go from Debian's packages (golang-go,
# golang-github-lucas-clemente-quic-go-dev). Nothing is fetched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
package=golang-github-lucas-clemente-quic-go-dev
source=/usr/share/gocode/src/github.com/lucas-clemente/quic-go
[ -d "$source" ] || { echo "build.sh: $package is not installed" >&2; exit 1; }

# The encoding is internal to quic-go: the program has to lie among its packages. A GOPATH of our own has
# copies of them; everything else is found in Debian's.
work=$(dirname "$out")/quicgo
inside=$work/src/github.com/lucas-clemente
rm -rf "$work/src"
mkdir -p "$inside"
cp -rL "$source" "$inside/quic-go"
mkdir "$inside/quic-go/leatbench"
cp "$here/main.go" "$inside/quic-go/leatbench/"
GO111MODULE=off GOPATH=$work:/usr/share/gocode GOCACHE=$work/cache GOFLAGS=-trimpath
export GO111MODULE GOPATH GOCACHE GOFLAGS
version=$(dpkg-query -W -f '${Version}' "$package")
go build -ldflags "-X main.version=$version/$(go env GOVERSION)" -o "$out" \
    github.com/lucas-clemente/quic-go/leatbench
