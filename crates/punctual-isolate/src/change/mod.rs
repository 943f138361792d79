//! Reversible changes of settings, robust against the death of the process that makes them.
//!
//! Before each change, a [`Journal`] records the setting, its old value and its new one. Undoing
//! goes through it backwards and restores every setting that still has the value it was given;
//! settings that others have changed since are left alone. Undoing can be interrupted at any time,
//! and repeated.

mod journal;

use std::fmt::{self, Display, Formatter};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use punctual_process::scheduling::set_policy_of;
use serde::{Deserialize, Serialize};

use crate::cpus::Cpus;
use crate::facts::Thread;
use crate::tree::Tree;

pub use self::journal::{Held, Journal, JournalError, Left, Owner, Store, Undone};

/// A setting and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The setting.
    pub setting: Setting,
    /// The new value.
    pub new: String,
}

impl Change {
    /// Creates the change of a kernel file.
    #[must_use]
    pub fn file(path: &str, new: &str) -> Self {
        Self { setting: Setting::File(path.to_owned()), new: new.to_owned() }
    }
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// A file of `/proc` or `/sys`.
    File(String),
    /// The policy and priority of a thread, as in `fifo 50`. The thread is the one that began at
    /// `started`.
    Policy {
        /// Its TID.
        thread: u32,
        /// Its start time.
        started: u64,
    },
    /// The CPUs that a thread may run on, as a list.
    Affinity {
        /// Its TID.
        thread: u32,
        /// Its start time.
        started: u64,
    },
    /// A control group: `there` or `absent`. Processes of a removed group move to its parent.
    Group(String),
    /// Controls whether child groups have a controller: `on` or `off`.
    Controller {
        /// The directory of the group.
        group: String,
        /// The controller.
        name: String,
    },
    /// The processes of a group: `some` (the movable processes of the parent group) or `none`.
    Members(String),
}

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
            Self::Policy { thread, .. } => write!(f, "the policy of thread {thread}"),
            Self::Affinity { thread, .. } => write!(f, "the CPUs of thread {thread}"),
            Self::Group(path) => write!(f, "the control group {path}"),
            Self::Controller { group, name } => write!(f, "the controller {name} of {group}"),
            Self::Members(path) => write!(f, "the processes of {path}"),
        }
    }
}

impl Setting {
    /// Returns a canonical form of a value, regardless of the form in which the kernel writes it,
    /// so that values can be compared.
    #[must_use]
    pub fn canonical(&self, value: &str) -> String {
        let value = value.trim();
        let Self::File(path) = self else { return value.to_owned() };
        let name = path.rsplit('/').next().unwrap_or_default();
        // The kernel appends the reason if a partition is invalid.
        if name == "cpuset.cpus.partition" {
            return value.split(' ').next().unwrap_or_default().to_owned();
        }
        // The selected choice is in brackets.
        if let Some((_, rest)) = value.split_once('[')
            && let Some((chosen, _)) = rest.split_once(']')
        {
            return chosen.to_owned();
        }
        let is_mask =
            matches!(name, "smp_affinity" | "rps_cpus" | "xps_cpus" | "cpumask" | "default_smp_affinity");
        match is_mask {
            true => Cpus::of_mask(value).to_string(),
            false if name.ends_with("_list") || name == "cpuset.cpus" => Cpus::of_list(value).to_string(),
            false => value.to_owned(),
        }
    }
}

/// Reads and changes settings.
pub trait Settings {
    /// Returns the value of a setting.
    ///
    /// # Errors
    /// The setting no longer exists, or must not be read.
    fn get(&self, setting: &Setting) -> io::Result<String>;

    /// Changes a setting.
    ///
    /// # Errors
    /// The setting no longer exists, or the kernel refuses.
    fn set(&mut self, setting: &Setting, value: &str) -> io::Result<()>;
}

/// The settings of this machine, or those of a directory tree.
#[derive(Debug)]
pub struct Live {
    root: PathBuf,
}

impl Live {
    /// Uses the settings of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/")
    }

    /// Uses the tree in which `root` stands for `/`. It has no threads.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the thread with this TID, if it is still the same.
    fn find(&self, thread: u32, started: u64) -> io::Result<Thread> {
        if self.root != Path::new("/") {
            return Err(gone());
        }
        let found = Thread::read(&Tree::system(), thread, thread);
        found.filter(|found| found.started == started).ok_or_else(gone)
    }
}

impl Settings for Live {
    fn get(&self, setting: &Setting) -> io::Result<String> {
        match setting {
            Setting::File(path) => Ok(fs::read_to_string(self.path(path))?.trim_end_matches('\n').to_owned()),
            Setting::Policy { thread, started } => {
                let found = self.find(*thread, *started)?;
                Ok(match found.policy {
                    crate::facts::Policy::Fair => "other 0".into(),
                    crate::facts::Policy::Fifo(priority) => format!("fifo {priority}"),
                    crate::facts::Policy::RoundRobin(priority) => format!("rr {priority}"),
                    crate::facts::Policy::Deadline => "deadline 0".into(),
                })
            }
            Setting::Affinity { thread, started } => {
                let cpus = self.find(*thread, *started)?.cpus;
                Ok(cpus.ok_or_else(gone)?.to_string())
            }
            Setting::Group(path) => Ok(if self.path(path).is_dir() { "there" } else { "absent" }.into()),
            Setting::Controller { group, name } => {
                let text = fs::read_to_string(self.path(group).join(CONTROLLERS))?;
                Ok(if text.split_whitespace().any(|word| word == name) { "on" } else { "off" }.into())
            }
            Setting::Members(path) => {
                let text = fs::read_to_string(self.path(path).join(PROCESSES))?;
                Ok(if text.trim().is_empty() { "none" } else { "some" }.into())
            }
        }
    }

    fn set(&mut self, setting: &Setting, value: &str) -> io::Result<()> {
        match setting {
            Setting::File(path) => {
                // Without creating: a missing file is not set. In one call: the kernel takes each
                // write for a value.
                let mut file =
                    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(self.path(path))?;
                let value = format!("{value}\n");
                file.write_all(value.as_bytes())?;
                // For files of a tree, and afterwards: a kill in between must not leave an empty
                // file. Kernel files have no length.
                let _ = file.set_len(value.len() as u64);
                Ok(())
            }
            Setting::Policy { thread, started } => {
                self.find(*thread, *started)?;
                set_policy(*thread, value)
            }
            Setting::Affinity { thread, started } => {
                self.find(*thread, *started)?;
                let mut set = rustix::thread::CpuSet::new();
                let cpus = Cpus::of_list(value);
                cpus.iter().filter(|&cpu| cpu < rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
                let thread = i32::try_from(*thread).ok().and_then(rustix::process::Pid::from_raw);
                Ok(rustix::thread::sched_setaffinity(Some(thread.ok_or_else(gone)?), &set)?)
            }
            Setting::Group(path) if value == "there" => fs::create_dir(self.path(path)),
            Setting::Group(path) => {
                let group = self.path(path);
                empty(&group)?;
                fs::remove_dir(group)
            }
            Setting::Controller { group, name } => {
                let sign = if value == "on" { '+' } else { '-' };
                fs::write(self.path(group).join(CONTROLLERS), format!("{sign}{name}"))
            }
            Setting::Members(path) if value == "some" => {
                let group = self.path(path);
                // Kernel threads that are bound to a CPU, and processes that have ended, stay.
                let _stayed = pass(above(&group)?, &group)?;
                Ok(())
            }
            Setting::Members(path) => empty(&self.path(path)),
        }
    }
}

/// The files with the controllers of child groups, and with the processes of a group.
const CONTROLLERS: &str = "cgroup.subtree_control";
const PROCESSES: &str = "cgroup.procs";

/// The number of attempts to empty a group whose processes keep starting others.
const ROUNDS: usize = 100;

/// Moves the processes of a group to another, one by one. Returns the number that stayed.
fn pass(from: &Path, to: &Path) -> io::Result<usize> {
    let processes = fs::read_to_string(from.join(PROCESSES))?;
    Ok(processes.lines().filter(|process| fs::write(to.join(PROCESSES), process).is_err()).count())
}

/// Moves all processes of a group to its parent.
fn empty(group: &Path) -> io::Result<()> {
    for _ in 0..ROUNDS {
        match fs::read_to_string(group.join(PROCESSES)) {
            Ok(processes) if processes.trim().is_empty() => break,
            Ok(_) => drop(pass(group, above(group)?)?),
            // A group without this file has no processes.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn above(group: &Path) -> io::Result<&Path> {
    group.parent().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the group has no parent"))
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the thread has ended")
}

fn set_policy(thread: u32, value: &str) -> io::Result<()> {
    let invalid =
        || io::Error::new(io::ErrorKind::InvalidInput, format!("`{value}` is not a policy with a priority"));
    let (policy, priority) = value.split_once(' ').ok_or_else(invalid)?;
    let policy = match policy {
        "other" => libc::SCHED_OTHER,
        "fifo" => libc::SCHED_FIFO,
        "rr" => libc::SCHED_RR,
        _ => return Err(invalid()),
    };
    let priority = priority.parse().map_err(|_| invalid())?;
    let thread = i32::try_from(thread).map_err(|_| gone())?;
    set_policy_of(thread, policy, priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_values_in_every_notation() {
        let same = |path: &str, one: &str, other: &str| {
            let setting = Setting::File(path.into());
            assert_eq!(setting.canonical(one), setting.canonical(other), "{path}");
        };
        same("/proc/irq/9/smp_affinity", "00000000,0000000f", "f\n");
        same("/proc/irq/9/smp_affinity_list", "0-3", "0,1,2,3");
        same("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]", "never");
        same("/proc/sys/vm/swappiness", "60\n", "60");
        assert_ne!(Setting::File("/x".into()).canonical("060"), Setting::File("/x".into()).canonical("60"));
    }

    #[test]
    fn never_creates_missing_file() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("a"), "long old text\n").unwrap();
        let mut live = Live::at(root);
        live.set(&Setting::File("/a".into()), "1").unwrap();
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "1\n");
        let error = live.set(&Setting::File("/b".into()), "1").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn ignores_thread_with_reused_id() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let mut live = Live::system();
        let other = Setting::Policy { thread: own, started: 1 };
        assert_eq!(live.get(&other).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(live.set(&other, "fifo 1").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
