#!/usr/bin/env bash
# Installs the system packages that the lab needs, where they are missing; with --build also those that it takes to build
# a kernel, with --arm64 those for guests and boards with 64-bit ARM.
#
# This is the one list of them: `<what the lab calls> <package>`. `cargo xtask lab` reads it too.
set -euo pipefail

# begin
needs=(
    "qemu-system-x86_64 qemu-system-x86"
    "busybox busybox-static"
    "apt-get apt"
    "apt-cache apt"
    "dpkg-deb dpkg"
    "tar tar"
    "xz xz-utils"
    "zstd zstd"
    "setpriv util-linux"
    "nice coreutils"
    "ldd libc-bin"
    "make make"
    "gcc gcc"
    "ld binutils"
    "/usr/lib/x86_64-linux-gnu/libelf.so.1 libelf1"
)
needs_for_arm64=(
    "qemu-system-aarch64 qemu-system-arm"
    "aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu"
    "/usr/aarch64-linux-gnu/lib/crt1.o libc6-dev-arm64-cross"
)
needs_to_build=(
    "flex flex"
    "bison bison"
    "bc bc"
    "pahole pahole"
    "/usr/include/gelf.h libelf-dev"
)
# end

case "${1-}" in
"") ;;
--build) needs+=("${needs_to_build[@]}") ;;
--arm64) needs+=("${needs_for_arm64[@]}") ;;
*)
    echo "usage: packages.sh [--build | --arm64]" >&2
    exit 2
    ;;
esac

missing=()
for need in "${needs[@]}"; do
    what=${need% *}
    [ -e "$what" ] || command -v "$what" >/dev/null || missing+=("${need#* }")
done
# The one in the guest has no libraries to load.
if command -v busybox >/dev/null && ldd "$(command -v busybox)" >/dev/null 2>&1; then
    missing+=(busybox-static)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

# What several of QEMU's packages share has one version: where that is of the backports, for bare boards, the others are too.
from=()
if dpkg-query -W -f '${Version}' qemu-system-common 2>/dev/null | grep -q '~bpo'; then
    from=(-t "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports")
fi
bash "$(dirname "${BASH_SOURCE[0]}")/../.ci/apt-install.sh" "run the lab" "${from[@]}" "${missing[@]}"
