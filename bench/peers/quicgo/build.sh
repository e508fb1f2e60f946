#!/bin/sh
# build.sh OUT MAIN: builds a quic-go peer from the program MAIN by Debian's Go from Debian's packages (golang-go,
# golang-github-lucas-clemente-quic-go-dev). Nothing is fetched.
set -eu
out=$1
main=$2
package=golang-github-lucas-clemente-quic-go-dev
source=/usr/share/gocode/src/github.com/lucas-clemente/quic-go
[ -d "$source" ] || { echo "build.sh: $package is not installed" >&2; exit 1; }

# What is internal to quic-go is measured too: the program has to lie among its packages. A GOPATH of our own has
# copies of them; everything else is found in Debian's.
work=$out.go
inside=$work/src/github.com/lucas-clemente
rm -rf "$work/src"
mkdir -p "$inside"
cp -rL "$source" "$inside/quic-go"
mkdir "$inside/quic-go/leatbench"
cp "$main" "$inside/quic-go/leatbench/"
GO111MODULE=off GOPATH=$work:/usr/share/gocode GOCACHE=$work/cache GOFLAGS=-trimpath
export GO111MODULE GOPATH GOCACHE GOFLAGS
version=$(dpkg-query -W -f '${Version}' "$package")
go build -ldflags "-X main.version=$version/$(go env GOVERSION)" -o "$out" \
    github.com/lucas-clemente/quic-go/leatbench
