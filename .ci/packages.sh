#!/usr/bin/env bash
# Installs the system packages that building and testing Punctual needs, where they are missing.
#
# This is the one list of system packages; the Rust toolchain comes from rustup.
set -euo pipefail

# A C toolchain: rustc links through cc and against the C library's start files. libFuzzer, which the readers of traces
# are fuzzed with, is C++.
packages=(gcc g++ libc6-dev)

# Asks for what the packages are for instead of for their names, so any distribution and any compiler will do.
links_programs() {
    local directory status=0
    directory=$(mktemp -d)
    echo 'int main(void) { return 0; }' >"$directory/probe.c"
    cc -o "$directory/probe" "$directory/probe.c" -lpthread -lm 2>/dev/null || status=1
    c++ -o "$directory/probe" -x c++ "$directory/probe.c" 2>/dev/null || status=1
    rm -rf "$directory"
    return "$status"
}

if links_programs; then
    exit 0
fi

bash "$(dirname "${BASH_SOURCE[0]}")/apt-install.sh" "compile C and C++" "${packages[@]}"
links_programs || { echo "packages.sh: cc or c++ cannot link a program even with ${packages[*]} installed" >&2; exit 1; }
