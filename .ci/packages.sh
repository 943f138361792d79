#!/usr/bin/env bash
# Installs the system packages that building and testing Punctual needs, where they are missing;
# with --bare those for programs without an operating system, with --musl a C compiler for that
# library, with --tools the programs of others that messages name, with --valgrind that one.
#
# The only list of system packages; the Rust toolchain comes from rustup.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")

# QEMU, with the Raspberry Pi 4 from version 9 on, and a compiler that can build the standard
# library from its sources, which rustup's does not need where `rustup target add` has been run.
bare() {
    local packages=()
    has_raspberry_pi_4() { qemu-system-aarch64 -machine help 2>/dev/null | grep -q '^raspi4b '; }
    if ! has_raspberry_pi_4; then
        packages+=(qemu-system-arm)
        if grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release && add_backports; then
            packages=(-t bookworm-backports "${packages[@]}")
        fi
    fi
    local target directory
    for target in armv7a-none-eabihf aarch64-unknown-none; do
        directory=$(rustc --print target-libdir --target "$target" 2>/dev/null) || directory=
        if [ ! -d "$directory" ] && [ ! -d /usr/lib/rustlib/src/rust/library/core ]; then
            packages+=(rustc-web cargo-web rust-web-src)
            break
        fi
    done
    # The boot loader receives from its programs too.
    command -v sx >/dev/null || packages+=(lrzsz)
    [ ${#packages[@]} = 0 ] || bash "$here/apt-install.sh" "run programs on bare boards" "${packages[@]}"
}

# Debian 12 has QEMU 7; its backports, from where its other packages come, have a newer one. Takes
# root, for a file of our own.
add_backports() {
    local file=/etc/apt/sources.list.d/punctual-backports.list from
    sources() { apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null; }
    ! sources | grep -q ' bookworm-backports$' || return 0
    [ "$(id -u)" = 0 ] || return 1
    from=$(sources | sed -n 's/ bookworm$//p' | head -n 1)
    [ -n "$from" ] || return 1
    echo "deb $from bookworm-backports main" >"$file"
}

case "${1-}" in
"") ;;
--bare)
    bare
    exit
    ;;
--musl)
    command -v "$(uname -m)-linux-musl-gcc" >/dev/null || bash "$here/apt-install.sh" "compile C for musl" musl-tools
    exit
    ;;
--tools)
    packages=()
    while read -r program package; do
        command -v "$program" >/dev/null || packages+=("$package")
    done <<'END'
babeltrace2 babeltrace2
cpupower linux-cpupower
cyclictest rt-tests
lttng lttng-tools
modprobe kmod
podman podman
sshd openssh-server
trace-cmd trace-cmd
END
    [ ${#packages[@]} = 0 ] || bash "$here/apt-install.sh" "run what messages name" "${packages[@]}"
    exit
    ;;
--valgrind)
    command -v valgrind >/dev/null || bash "$here/apt-install.sh" "count instructions and check memory" valgrind
    exit
    ;;
*)
    echo "usage: packages.sh [--bare | --musl | --tools | --valgrind]" >&2
    exit 2
    ;;
esac

# A C toolchain: rustc links through cc and against the C library's start files. libFuzzer, which
# the readers of traces are fuzzed with, is C++.
packages=(gcc g++ libc6-dev)

# Asks for what the packages are for instead of for their names, so any distribution and any
# compiler will do.
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

bash "$here/apt-install.sh" "compile C and C++" "${packages[@]}"
links_programs || { echo "packages.sh: cc or c++ cannot link a program even with ${packages[*]} installed" >&2; exit 1; }
