#!/usr/bin/env bash
# Installs missing system packages for the lab; with --build also those for building a kernel, with
# --arm64 those for guests and boards with 64-bit ARM.
#
# The only list of packages: `<program or file> <package>`. `cargo xtask lab` also reads it.
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
# Without shared libraries, since the guest has none at that point.
if command -v busybox >/dev/null && ldd "$(command -v busybox)" >/dev/null 2>&1; then
    missing+=(busybox-static)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

# QEMU's packages must have the same version: if the common one is from backports, for bare boards,
# so must be the others.
from=()
if dpkg-query -W -f '${Version}' qemu-system-common 2>/dev/null | grep -q '~bpo'; then
    from=(-t "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports")
fi
bash "$(dirname "${BASH_SOURCE[0]}")/../.ci/apt-install.sh" "run the lab" "${from[@]}" "${missing[@]}"
