#!/usr/bin/env bash
# Installs Debian packages, as root or by sudo without a password: apt-install.sh PURPOSE PACKAGE..
#
# Where that cannot be done, it says which packages to install for what.
set -euo pipefail
purpose=$1
shift

if [ "$(id -u)" = 0 ]; then
    as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    echo "packages.sh: to $purpose, install as root: $*" >&2
    exit 1
fi

if ! command -v apt-get >/dev/null; then
    echo "packages.sh: no apt-get; to $purpose, install what your system calls: $*" >&2
    exit 1
fi

"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
