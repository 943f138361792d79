#!/usr/bin/env bash
# Checks every set of features of `punctual`, as `cargo hack --feature-powerset` does, but each only
# once: `std` enables `alloc` and `virtual-time`, and `guard`, `io` and `signals` enable `std`. So
# 48 of 256 sets differ. cargo-hack 0.6 (MIT or Apache-2.0, maintained) would check them all, and be
# one more tool to install.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

with_each_of() { # SET FEATURE...: prints SET with every subset of the features
    local sets=("$1") feature set
    shift
    for feature in "$@"; do
        for set in "${sets[@]}"; do sets+=("$set,$feature"); done
    done
    printf '%s\n' "${sets[@]}"
}

{
    with_each_of "" alloc async monitoring virtual-time
    with_each_of std async guard io monitoring signals
} | while read -r set; do
    cargo check --quiet --locked -p punctual --no-default-features --features "${set#,}" </dev/null ||
        { echo "punctual does not compile with the features '${set#,}'" >&2 && exit 1; }
    echo "compiles: ${set#,}"
done
