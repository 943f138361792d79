//! The table of long checks.

/// Commands that are reported as one line.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    /// The time limit of each command, in minutes.
    pub(crate) limit_min: u32,
    /// Words separated by spaces, run in the root of the workspace.
    pub(crate) commands: &'static [&'static str],
}

/// A check fails if a tool is missing, instead of passing without a result. Programs are killed at
/// more moments than in a merge, and tests try more random inputs.
pub(super) const ENVIRONMENT: [(&str, &str); 4] = [
    ("PUNCTUAL_TOOLS", "required"),
    ("PUNCTUAL_KILLS", "200"),
    ("PUNCTUAL_REPEATS", "20"),
    ("CARGO_NET_RETRY", "10"),
];

/// Fast parts come first, so that a defect shows early.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "readme",
        purpose: "the first commands of the README, as a newcomer runs them",
        limit_min: 60,
        commands: &["cargo run --release -p gimbal", "cargo install --locked --path crates/punctual-cli"],
    },
    Part {
        name: "release",
        purpose: "every crate can be published",
        limit_min: 60,
        commands: &["cargo xtask check release"],
    },
    Part {
        name: "book",
        purpose: "the book builds, and its links and listings are right",
        limit_min: 30,
        commands: &["cargo xtask check book"],
    },
    Part {
        name: "instructions",
        purpose: "counted instructions of spawning and locking",
        limit_min: 30,
        commands: &["bash .ci/packages.sh --valgrind", "cargo xtask check instructions"],
    },
    Part {
        name: "valgrind",
        purpose: "no errors of memory in an app under valgrind",
        limit_min: 30,
        commands: &[
            "bash .ci/packages.sh --valgrind",
            "cargo test --locked -p punctual --test it -- --ignored valgrind_reports_no_errors",
        ],
    },
    Part {
        name: "examples",
        purpose: "examples on virtual time and on threads, on all executors",
        limit_min: 60,
        commands: &["cargo xtask check examples"],
    },
    Part {
        name: "unprivileged",
        purpose: "tests and examples as a user without privileges",
        limit_min: 60,
        commands: &["cargo xtask test unprivileged"],
    },
    Part {
        name: "musl",
        purpose: "tests of the runtime with another C library",
        limit_min: 30,
        commands: &[
            // A dependency of benchmarks is in C.
            "bash .ci/packages.sh --musl",
            "rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl",
            "cargo check --locked --target aarch64-unknown-linux-musl -p punctual-process -p punctual",
            "cargo test --locked --target x86_64-unknown-linux-musl -p punctual-process -p punctual --lib",
            // One at a time: real-time apps would take the CPU from the others.
            "cargo test --locked --target x86_64-unknown-linux-musl -p punctual --test it -- --test-threads=1 inherited:: settings::",
        ],
    },
    Part {
        name: "features",
        purpose: "every set of features of punctual, tests with single ones, and BPF programs",
        limit_min: 60,
        commands: &[
            "bash .ci/packages.sh --tools",
            "cargo test --locked -p punctual --no-default-features --features std",
            "cargo check --locked -p portable",
            "bash .ci/features.sh",
            "cargo test --locked -p punctual-trace -p punctual-cli --features punctual-cli/bpf",
        ],
    },
    Part {
        name: "templates",
        purpose: "packages made by `punctual new` build and run",
        limit_min: 60,
        commands: &["cargo test -p punctual-cli --test it -- --ignored new_package_builds"],
    },
    Part {
        name: "stress",
        purpose: "each kind of executor on real threads, in a release build",
        limit_min: 60,
        commands: &["cargo xtask fuzz stress --seconds 60"],
    },
    Part {
        name: "fuzz",
        purpose: "random apps, and random input for all readers of files",
        limit_min: 60,
        commands: &[
            "cargo xtask fuzz apps --seconds 300",
            "cargo xtask fuzz traces",
            "cargo xtask fuzz machines",
            "cargo xtask fuzz models",
        ],
    },
    Part {
        name: "rta",
        purpose: "response-time analysis against the executor and pyCPA, with seeded mistakes",
        limit_min: 120,
        commands: &[
            "cargo xtask fuzz sets",
            "cargo xtask loom --package punctual-analysis",
            "cargo xtask check pycpa",
        ],
    },
    Part {
        name: "traces",
        purpose: "recordings published by others, recomputed by a script, with seeded mistakes",
        limit_min: 180,
        commands: &[
            "cargo xtask check recordings",
            "cargo xtask loom --package punctual-trace --package punctual-cli",
        ],
    },
    Part {
        name: "transports",
        purpose: "ROS 1, ROS 2, Zenoh and EtherCAT with real or simulated peers, and seeded mistakes",
        limit_min: 150,
        commands: &[
            "cargo xtask test transports",
            "cargo xtask test transports --faults 20",
            "cargo xtask loom --package punctual-bridge",
        ],
    },
    Part {
        name: "boards",
        purpose: "programs without an operating system on five boards in QEMU",
        limit_min: 120,
        commands: &["bash .ci/packages.sh --bare", "cargo xtask bare test"],
    },
    Part {
        name: "lab",
        purpose: "the suite and its figures on a PREEMPT_RT kernel in QEMU",
        limit_min: 240,
        commands: &[
            "bash lab/packages.sh",
            "cargo xtask lab kernel rt",
            "cargo xtask lab test",
            "cargo xtask lab figures",
            "cargo xtask check slowdowns",
        ],
    },
    Part {
        name: "schedules",
        purpose: "random programs on the simulated kernel, and signals inside a process",
        limit_min: 60,
        commands: &["cargo xtask fuzz schedules"],
    },
    Part {
        name: "loom",
        purpose: "all models, and all seeded bugs",
        limit_min: 240,
        commands: &["cargo xtask loom", "cargo xtask loom --package punctual-kernel"],
    },
    Part {
        name: "sanitizers",
        purpose: "the runtime's tests under AddressSanitizer, ThreadSanitizer and Miri",
        limit_min: 240,
        commands: &["cargo +nightly xtask test sanitize", "cargo +nightly xtask test miri"],
    },
    Part {
        name: "mutants",
        purpose: "small mechanical bugs in the protocols, each noticed by a model or a test",
        limit_min: 1440,
        commands: &["cargo xtask mutants"],
    },
    Part {
        name: "logic",
        purpose: "operators, conditions and results changed by cargo-mutants, an eighth each day",
        limit_min: 600,
        commands: &["cargo xtask mutants --logic --sample day/8"],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;
    use crate::{cargo, files};

    #[test]
    fn names_each_part_once() {
        let names: BTreeSet<_> = PARTS.iter().map(|part| part.name).collect();
        assert_eq!(names.len(), PARTS.len());
    }

    #[test]
    fn runs_the_first_commands_of_the_readme() {
        let readme = std::fs::read_to_string(crate::cargo::root().join("README.md")).unwrap();
        let part = PARTS.iter().find(|part| part.name == "readme").unwrap();
        let start = readme.split("\n## ").find(|section| section.starts_with("Quick start")).unwrap();
        let first = start.split("\n\n").find(|block| block.starts_with("    ")).unwrap();
        let commands: Vec<&str> =
            first.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
        assert!(commands.starts_with(part.commands), "{commands:?}");
    }

    #[test]
    fn names_only_existing_commands() {
        for command in PARTS.iter().flat_map(|part| part.commands) {
            let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "+nightly").collect();
            if words[..2] == ["cargo", "xtask"] {
                crate::tests::accepts(&words[2..]);
            } else if let Some((_, filter)) = command.split_once(" -- --ignored ") {
                let sources = files::below(&cargo::root().join("crates"), &["rs"]).unwrap();
                let declares =
                    |source: &PathBuf| files::read(source).unwrap().contains(&format!("fn {filter}"));
                assert!(sources.iter().any(declares), "no test is named {filter}");
            }
        }
    }
}
