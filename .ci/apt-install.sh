#!/usr/bin/env bash
# Installs Debian packages, as root or by sudo without a password: apt-install.sh PURPOSE PACKAGE..
#
# If it cannot install them, it names the packages and their purpose.
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

# Another apt may be at work, on a machine that has just started its own updates. `install` waits
# for it by itself.
for attempt in {1..30}; do
    status=0
    said=$("${as_root[@]}" env LC_ALL=C apt-get update -qq 2>&1) || status=$?
    if [ "$status" = 0 ] || [[ $said != *"Could not get lock"* ]]; then
        break
    fi
    [ "$attempt" != 1 ] || echo "packages.sh: another apt is at work; waiting for it, 5 minutes at most" >&2
    sleep 10
done
if [ "$status" != 0 ]; then
    printf '%s\npackages.sh: no lists of packages; to %s, install: %s\n' "$said" "$purpose" "$*" >&2
    exit "$status"
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "$@"
