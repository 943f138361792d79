//! The environment variables of an app, a row for each: reading, errors and the table of the book
//! are derived from these.

use std::ffi::OsStr;
use std::path::PathBuf;

use punctual_core::Duration;

use super::{Guard, Marks, PerPartition, Reporting};
use crate::config::Config;

/// A variable.
pub(super) struct Variable {
    name: &'static str,
    /// Valid values, for errors; `{value}` stands for the invalid one.
    expected: &'static str,
    /// Changes the configuration; returns false if the value is invalid.
    read: fn(&mut Config, &OsStr) -> bool,
    /// Values and effect, in the book.
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the book by a test"))]
    documentation: [&'static str; 2],
}

const FLAG: &str = "1 or 0";
const FILE: &str = "the path of a file to be written";
const GUARDS: &str = if cfg!(feature = "guard") {
    "report, stop or off"
} else {
    "off, or build the program with the feature `guard` of `punctual`"
};

/// All variables.
pub(super) const VARIABLES: [Variable; 12] = [
    Variable {
        name: "PUNCTUAL_PORT",
        expected: "linux or virtual",
        read: |config, value| match value.to_str() {
            Some("linux") => store(&mut config.virtual_time, Some(false)),
            Some("virtual") => store(&mut config.virtual_time, Some(true)),
            _ => false,
        },
        documentation: ["`linux`, `virtual`", "runs on real threads (default) or in virtual time"],
    },
    Variable {
        name: "PUNCTUAL_REPORT",
        expected: "auto, always or never, or to the path of a file with a `/` in it, as ./{value}",
        read: |config, value| store_some(&mut config.platform.report, Reporting::parse(value)),
        documentation: [
            "`auto`, `always`, `never`, a path",
            "selects the destination of the report, see below",
        ],
    },
    Variable {
        name: "PUNCTUAL_CPU",
        expected: "the number of a CPU, or to NAME=CPU,… for several partitions",
        read: |config, value| store(&mut config.platform.cpus, value.to_str().and_then(PerPartition::parse)),
        documentation: ["`3`, `control=1,io=2`", "selects the CPU of the app, or of each partition"],
    },
    Variable {
        name: "PUNCTUAL_STRICT",
        expected: FLAG,
        read: |config, value| store_some(&mut config.platform.strict, flag(value)),
        documentation: ["`1`, `0`", "refuses to start unless every real-time setting was granted"],
    },
    Variable {
        name: "PUNCTUAL_STACK",
        expected: "a number of KiB, or to NAME=KIB,… for several partitions",
        read: |config, value| {
            let stacks = value.to_str().and_then(PerPartition::parse).and_then(PerPartition::kib);
            store(&mut config.platform.stacks, stacks)
        },
        documentation: ["`8192`, `control=4096`", "sets the stack size of each thread, in KiB"],
    },
    Variable {
        name: "PUNCTUAL_WAKE_LATENCY",
        expected: "a number of µs",
        read: |config, value| {
            let micros = value.to_str().and_then(|value| value.parse::<u32>().ok());
            let longest = micros.map(|micros| Duration::from_micros(micros.into()));
            store_some(&mut config.platform.wake_latency, longest)
        },
        documentation: ["`0`", "limits the wake-up latency of all CPUs, in µs"],
    },
    Variable {
        name: "PUNCTUAL_TRACE",
        expected: "1 or 0, or to the path of a trace_marker_raw",
        read: |config, value| {
            let marks = match value.to_str() {
                Some("1") => Some(Marks::On),
                Some("0") => Some(Marks::Off),
                _ if value.as_encoded_bytes().starts_with(b"/") => Some(Marks::In(value.into())),
                _ => None,
            };
            store_some(&mut config.platform.trace, marks)
        },
        documentation: [
            "`1`, `0`, a path",
            "marks every job in the kernel's trace; a path names a `trace_marker_raw`",
        ],
    },
    Variable {
        name: "PUNCTUAL_METRICS",
        expected: FLAG,
        read: |config, value| store_some(&mut config.platform.metrics, flag(value)),
        documentation: ["`1`, `0`", "allows `punctual top` to watch the app"],
    },
    Variable {
        name: "PUNCTUAL_RSEQ",
        expected: FLAG,
        read: |config, value| store_some(&mut config.platform.rseq, flag(value)),
        documentation: [
            "`1`, `0`",
            "locks and spawns by restartable sequences where the machine supports them",
        ],
    },
    Variable {
        name: "PUNCTUAL_GUARD",
        expected: GUARDS,
        read: |config, value| {
            let guard = match value.to_str() {
                Some("off") => Some(Guard::Off),
                Some("report") if cfg!(feature = "guard") => Some(Guard::Report),
                Some("stop") if cfg!(feature = "guard") => Some(Guard::Stop),
                _ => None,
            };
            store(&mut config.platform.guard, guard)
        },
        documentation: ["`report`, `stop`, `off`", "detects jobs that allocate or block"],
    },
    Variable {
        name: "PUNCTUAL_PROFILE",
        expected: FILE,
        read: |config, value| store_some(&mut config.platform.profile, path(value)),
        documentation: ["a path", "writes the measured times that `punctual rta` reads, as JSON"],
    },
    Variable {
        name: "PUNCTUAL_MODEL",
        expected: FILE,
        read: |config, value| store_some(&mut config.platform.model, path(value)),
        documentation: ["a path", "writes the declared task set as JSON, and exits without running"],
    },
];

/// Stores a valid value; returns whether it is valid.
fn store<T>(setting: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *setting = value;
            true
        }
        None => false,
    }
}

/// Like [`store`], for a setting without a default.
fn store_some<T>(setting: &mut Option<T>, value: Option<T>) -> bool {
    value.is_some_and(|value| store(setting, Some(Some(value))))
}

fn flag(value: &OsStr) -> Option<bool> {
    match value.to_str()? {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

fn path(value: &OsStr) -> Option<PathBuf> {
    (!value.is_empty()).then(|| value.into())
}

impl Config {
    /// Changes the configuration as the environment requests; see [`from_env`](Self::from_env).
    pub(crate) fn read_environment(&mut self) {
        for Variable { name, expected, read, .. } in VARIABLES {
            let Some(value) = std::env::var_os(name).filter(|value| !read(self, value)) else { continue };
            let value = value.to_string_lossy();
            let given = if value.is_empty() && expected == FILE {
                format!("{name} is empty")
            } else {
                format!("{name}={value} is invalid")
            };
            self.platform.bad_environment =
                Some(format!("{given}; set it to {}", expected.replace("{value}", &value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use xtask_support::{cargo, golden};

    use super::*;

    #[test]
    fn page_of_variables_is_current() {
        let page = cargo::root().join("docs/book/src/reference/environment.md");
        let rows = VARIABLES.iter().map(|variable| {
            let [values, effect] = variable.documentation.map(str::to_owned);
            [format!("`{}`", variable.name), values, effect]
        });
        assert_eq!(golden::table_difference(&page, &["variable", "values", "effect"], rows), None);
    }
}
