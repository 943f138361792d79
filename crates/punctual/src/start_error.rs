//! Reasons why an app did not start.

use core::fmt;

use crate::port::{SystemError, remedy};
use crate::report::Text;

/// True if the app is a Linux process.
const IS_PROCESS: bool = cfg!(feature = "std");

/// Reason why an app did not start. No code of it has run, and every message contains the remedy.
///
/// The reasons are the same on Linux and on a board; a platform that has no CPUs to choose or no
/// environment never returns those that concern them.
///
/// `Debug` prints the same message as `Display`, so that a failed `unwrap` or `expect` shows the
/// remedy.
#[non_exhaustive]
pub enum StartError {
    /// This app is already running; the name of its module. Runs in virtual time wait for each
    /// other instead.
    AlreadyRunning(&'static str),
    /// On a board: there is no core for a partition, or it does not start.
    NoCore {
        /// The app.
        app: &'static str,
        /// The partition.
        partition: &'static str,
        /// The number of the core.
        core: u32,
    },
    /// On a board: the app has several partitions, for which virtual time is not available there.
    VirtualPartitions(&'static str),
    /// On a board: the interrupt of a task cannot be routed to the core of the task's partition.
    NotRouted {
        /// The app.
        app: &'static str,
        /// The partition.
        partition: &'static str,
        /// The number of the interrupt.
        interrupt: u32,
    },
    /// An earlier run of this app did not complete its cleanup; the name of its module.
    NotReset(&'static str),
    /// An environment variable has an invalid value.
    Environment(Text),
    /// The model of the app cannot be written to the path in `PUNCTUAL_MODEL`.
    Model {
        /// The file.
        path: Text,
        /// The system's error.
        error: SystemError,
    },
    /// The profile cannot be written to the path of [`Config::profile`](crate::Config::profile) or
    /// `PUNCTUAL_PROFILE`.
    Profile {
        /// The file.
        path: Text,
        /// The system's error.
        error: SystemError,
    },
    /// The CPU does not exist or is not allowed to this process.
    Cpu {
        /// The requested CPU.
        cpu: usize,
        /// The partition it is for, if the app has several.
        partition: Option<&'static str>,
        /// The allowed CPUs.
        allowed: Text,
    },
    /// Two partitions were assigned to one CPU.
    SameCpu {
        /// The CPU.
        cpu: usize,
        /// The two partitions.
        partitions: [&'static str; 2],
    },
    /// There are more partitions than CPUs.
    TooFewCpus {
        /// The partitions.
        partitions: Text,
        /// The allowed CPUs.
        allowed: Text,
    },
    /// No CPU would be left apart from those of polling partitions.
    PollsOnlyCpu {
        /// A polling partition.
        partition: &'static str,
        /// The allowed CPUs.
        allowed: Text,
    },
    /// A CPU was given for a partition that the app does not have.
    UnknownPartition {
        /// Its name.
        name: Text,
        /// The partitions of the app, none if it runs on all CPUs.
        partitions: Text,
    },
    /// A CPU was given without a partition to an app with several, or to an app that runs on all
    /// CPUs.
    WhichPartition {
        /// The CPU.
        cpu: usize,
        /// The partitions of the app, none if it runs on all CPUs.
        partitions: Text,
    },
    /// A stack size was given for a partition that the app does not have.
    StackOfUnknownPartition {
        /// Its name.
        name: Text,
        /// The partitions of the app, none if it runs on all CPUs.
        partitions: Text,
    },
    /// The requested stack is too small for any thread.
    Stack {
        /// The requested size, in bytes.
        bytes: usize,
        /// The smallest possible size, in bytes.
        least: usize,
    },
    /// The kernel priorities of the levels would not all be in 1..=99.
    Priority {
        /// The requested priority base.
        base: u8,
        /// The highest level of the app.
        highest: u8,
    },
    /// `strict` is set and these real-time settings do not apply, one per line.
    Strict(Text),
    /// The kernel does not let threads wait for each other.
    Futex {
        /// The operation of futex(2) that it refuses.
        operation: &'static str,
        /// The kernel's error.
        error: SystemError,
        /// The remedy.
        advice: &'static str,
    },
    /// The system refused a call that the app requires.
    System {
        /// The attempted operation.
        attempt: &'static str,
        /// The system's error.
        error: SystemError,
    },
}

impl StartError {
    /// Returns the exit code for the process: 2 for a bad environment variable, CPU or priority,
    /// otherwise 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::AlreadyRunning(_)
            | Self::NotReset(_)
            | Self::Strict(_)
            | Self::Futex { .. }
            | Self::System { .. } => 1,
            _ => 2,
        }
    }
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRunning(app) if !IS_PROCESS => write!(
                f,
                "punctual: the app `{app}` cannot start: an app is running on this core; wait for its end"
            ),
            Self::NoCore { app, partition, core } => write!(
                f,
                "punctual: the app `{app}` cannot start: its partition `{partition}` needs core {core}, which the board does not \
                 have or which does not start; use fewer partitions, or give QEMU more cores with -smp"
            ),
            Self::VirtualPartitions(app) => write!(
                f,
                "punctual: the app `{app}` cannot start: it has several partitions, and on a board virtual time is for apps with one; \
                 run it on the board's clock, or in virtual time on Linux"
            ),
            Self::NotRouted { app, partition, interrupt } => write!(
                f,
                "punctual: the app `{app}` cannot start: a task of its partition `{partition}` \
                 binds interrupt {interrupt}, which this board delivers only to the first core; \
                 move the task to the first partition"
            ),
            // The other reasons do not occur on a board, whose images need not contain their texts.
            _ if !IS_PROCESS => Ok(()),
            Self::AlreadyRunning(name) => {
                write!(
                    f,
                    "the app `{name}` is already running in this process; wait until its `run` has \
                     returned, or \
                     use `Config::virtual_time`, whose runs wait for each other; run tests on \
                     kernel threads one by one, with `cargo test -- --test-threads=1`"
                )
            }
            Self::NotReset(name) => write!(
                f,
                "an earlier run of the app `{name}` ended early and left jobs behind, which must \
                 not be run with other resources; restart the process"
            ),
            Self::Environment(problem) => f.write_str(problem),
            Self::Model { path, error } => write!(
                f,
                "the model of the app cannot be written to {}: {error}; set PUNCTUAL_MODEL to a file that can be written, \
                 as ./model.json, or unset it to run the app",
                path
            ),
            Self::Profile { path, error } => write!(
                f,
                "a profile of the app could not be written to {}: {error}; choose a file that can be written, as ./profile.json, with \
                 `Config::profile` or PUNCTUAL_PROFILE",
                path
            ),
            Self::Cpu { cpu, partition: None, allowed } => write!(
                f,
                "there is no CPU {cpu} for this app; choose one of {allowed} with `#[app(cpu = …)]`, \
                 `Config::cpu` or PUNCTUAL_CPU, or allow it to the process"
            ),
            Self::Cpu { cpu, partition: Some(name), allowed } => write!(
                f,
                "there is no CPU {cpu} for the partition `{name}`; choose one of {allowed} with `{name}(cpu = …)`, \
                 `Config::partition_cpu` or PUNCTUAL_CPU={name}=…, or allow it to the process"
            ),
            Self::SameCpu { cpu, partitions: [one, other] } => write!(
                f,
                "the partitions `{one}` and `{other}` are both to be on CPU {cpu}; give one of them another CPU, or \
                 make one partition of them"
            ),
            Self::TooFewCpus { partitions, allowed } => write!(
                f,
                "each of the partitions {partitions} needs its own CPU, but this process may use \
                 only {allowed}; \
                 allow it more CPUs (cpuset, taskset), or make fewer partitions"
            ),
            Self::PollsOnlyCpu { partition, allowed } => write!(
                f,
                "the partition `{partition}` polls, which occupies its CPU, but this process may \
                 use only {allowed}; allow it another CPU (cpuset, taskset), or remove `poll`"
            ),
            Self::UnknownPartition { name, partitions } => match &**partitions {
                "" => write!(
                    f,
                    "a CPU is given for a partition `{name}`, but the app has no partitions and \
                     runs on every CPU; remove it from `Config::partition_cpu` or PUNCTUAL_CPU"
                ),
                _ => write!(
                    f,
                    "a CPU is given for a partition `{name}`, but those of the app are {partitions} (see \
                     `Config::partition_cpu` and PUNCTUAL_CPU)"
                ),
            },
            Self::WhichPartition { cpu, partitions } => match &**partitions {
                "" => write!(
                    f,
                    "CPU {cpu} is given, but the app runs on every CPU that the process may use; \
                     remove it from \
                     `Config::cpu` or PUNCTUAL_CPU, and restrict the process instead (cpuset, taskset)"
                ),
                _ => write!(
                    f,
                    "CPU {cpu} is given without a partition, but the app has {partitions}; name one with \
                     `Config::partition_cpu` or PUNCTUAL_CPU=NAME=CPU,…"
                ),
            },
            Self::StackOfUnknownPartition { name, partitions } => match &**partitions {
                "" => write!(
                    f,
                    "a stack is given for a partition `{name}`, but the app has no partitions; \
                     remove the name from \
                     `Config::partition_stack` or PUNCTUAL_STACK"
                ),
                _ => write!(
                    f,
                    "a stack is given for a partition `{name}`, but those of the app are {partitions} (see \
                     `Config::partition_stack` and PUNCTUAL_STACK)"
                ),
            },
            Self::Stack { bytes, least } => write!(
                f,
                "a stack of {bytes} bytes is too small; give each thread at least {} KiB, with `#[app(stack = ..)]`, \
                 `Config::stack` or PUNCTUAL_STACK, in KiB",
                least / 1024
            ),
            Self::Priority { base, highest } => write!(
                f,
                "with priority base {base}, level {highest} would have kernel priority {}, and the highest is 99; \
                 choose a base of at most {}",
                u32::from(*base) + u32::from(*highest),
                99 - highest
            ),
            Self::Strict(missing) => {
                f.write_str("strict: the app does not start, because it would not be real time:")?;
                missing.lines().try_for_each(|what| write!(f, "\n  {what}"))
            }
            Self::Futex { operation, error, advice } => {
                write!(
                    f,
                    "the kernel refuses futex({operation}), without which threads cannot wait: {error}; {advice}"
                )
            }
            Self::System { attempt, error } => write!(f, "{attempt}: {error}{}", remedy(error)),
        }
    }
}

impl core::error::Error for StartError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Model { error, .. }
            | Self::Profile { error, .. }
            | Self::Futex { error, .. }
            | Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_remedy() {
        let cpu = StartError::Cpu { cpu: 9, partition: None, allowed: "0,1".into() };
        assert!(cpu.to_string().contains("PUNCTUAL_CPU"));
        let priority = StartError::Priority { base: 90, highest: 20 };
        assert!(priority.to_string().ends_with("at most 79"), "{priority}");
    }

    #[cfg(feature = "std")]
    #[test]
    fn exhausted_limits_name_remedy() {
        let message = |error| {
            let error = SystemError::from_raw_os_error(error);
            StartError::System { attempt: "starting a thread", error }.to_string()
        };
        for (error, remedy) in [
            (libc::EAGAIN, "PUNCTUAL_STACK"),
            (libc::ENOMEM, "PUNCTUAL_STACK"),
            (libc::EMFILE, "`ulimit -n`"),
        ] {
            let text = message(error);
            assert!(text.starts_with("starting a thread: ") && text.contains(remedy), "{text}");
        }
        assert!(message(libc::EPERM).ends_with("(os error 1)"));
    }
}
