//! The selection of traced threads, and the kernel's ability to ignore the others.
//!
//! A thread that preempts a traced thread, or holds a resource that it waits for, affects its jobs,
//! so scheduler and interrupt events are recorded for all threads, unless a recording is
//! [narrow](super::Config::narrow). System calls are frequent and only those of traced threads
//! matter.

use std::fs;
use std::ops::RangeInclusive;

use super::error::RecordError;
use crate::event::Tid;

/// The traced threads: those that match any of these conditions. Without conditions, all threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Processes, with all of their threads and those that they start, or single threads.
    pub processes: Vec<Tid>,
    /// Names of threads, of which the kernel stores fifteen bytes.
    pub names: Vec<String>,
    /// Real-time priorities, 1 the lowest and 99 the highest.
    pub priorities: Option<RangeInclusive<u8>>,
}

impl Filter {
    /// Returns whether all threads are traced.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.names.is_empty() && self.priorities.is_none()
    }

    /// Returns whether threads are selected only by process, so that new ones are followed by their
    /// parent.
    pub(super) fn is_by_process(&self) -> bool {
        !self.processes.is_empty() && self.names.is_empty() && self.priorities.is_none()
    }

    /// Performs the checks that are possible before anything is recorded.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        for name in &self.names {
            if name.is_empty() || name.contains(['"', '\\', '\n']) {
                let why = "a name of a thread has no quotes, backslashes or line ends, and is not empty";
                return Err(RecordError::Filter { filter: name.clone(), why: why.to_owned() });
            }
        }
        if let Some(range) = &self.priorities
            && (range.is_empty() || *range.start() < 1 || *range.end() > 99)
        {
            let why = "real-time priorities go from 1 to 99, the lower one first";
            let filter = format!("{}..{}", range.start(), range.end());
            return Err(RecordError::Filter { filter, why: why.to_owned() });
        }
        Ok(())
    }

    /// Returns the current threads of the processes, and those with the selected priorities.
    pub(super) fn threads(&self) -> Result<Vec<Tid>, RecordError> {
        let mut threads = Vec::new();
        for &process in &self.processes {
            let tasks = fs::read_dir(format!("/proc/{process}/task"));
            let tasks = tasks.map_err(|_| RecordError::UnknownProcess { process })?;
            threads.extend(tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse::<Tid>().ok()));
        }
        if let Some(range) = &self.priorities {
            threads.extend(
                all_threads()
                    .filter(|&(thread, process)| {
                        priority(process, thread).is_some_and(|priority| range.contains(&priority))
                    })
                    .map(|(thread, _)| thread),
            );
        }
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    /// Returns the first and the last of the priorities in the kernel's numbering, which is
    /// reversed.
    pub(super) fn kernel_priorities(&self) -> Option<(i32, i32)> {
        self.priorities.as_ref().map(|range| (99 - i32::from(*range.end()), 99 - i32::from(*range.start())))
    }

    /// Returns a condition in the kernel's filter syntax for an event that names a thread in these
    /// fields.
    pub(super) fn condition(&self, threads: &[Tid], pid: &[&str], comm: &[&str], prio: &[&str]) -> String {
        let mut any = Vec::new();
        for field in pid {
            any.extend(threads.iter().map(|thread| format!("{field}=={thread}")));
        }
        for field in comm {
            any.extend(self.names.iter().map(|name| format!("{field}==\"{}\"", kernel_name(name))));
        }
        if let Some((first, last)) = self.kernel_priorities() {
            any.extend(prio.iter().map(|field| format!("({field}>={first}&&{field}<={last})")));
        }
        any.join("||")
    }
}

/// Returns the part of a name that the kernel stores.
pub(super) fn kernel_name(name: &str) -> &str {
    let mut end = name.len().min(15);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Returns all threads, with their processes.
pub(super) fn all_threads() -> impl Iterator<Item = (Tid, Tid)> {
    numbers("/proc").flat_map(|process| threads_of(process).map(move |thread| (thread, process)))
}

/// Returns the threads of a process; none if the process does not exist.
pub(super) fn threads_of(process: Tid) -> impl Iterator<Item = Tid> {
    numbers(&format!("/proc/{process}/task"))
}

/// Returns the entries of a directory of `/proc` that are numbers.
fn numbers(path: &str) -> impl Iterator<Item = Tid> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the real-time priority of a thread, if it has one.
fn priority(process: Tid, thread: Tid) -> Option<u8> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    // The 40th field is the 38th after the name.
    let priority = stat.rsplit_once(')')?.1.split_whitespace().nth(37)?.parse().ok()?;
    (priority > 0).then_some(priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combines_filter_conditions() {
        let filter = Filter {
            processes: vec![],
            names: vec!["logger".into(), "a name of seventeen".into()],
            priorities: Some(1..=49),
        };
        filter.check().unwrap();
        assert_eq!(
            filter.condition(&[7], &["prev_pid", "next_pid"], &["comm"], &["prio"]),
            "prev_pid==7||next_pid==7||comm==\"logger\"||comm==\"a name of seven\"||(prio>=50&&prio<=98)"
        );
        assert_eq!(Filter::default().condition(&[], &["pid"], &["comm"], &["prio"]), "");
    }

    #[test]
    fn rejects_invalid_records() {
        let name = Filter { names: vec!["a\"||1==1".into()], ..Filter::default() };
        assert!(matches!(name.check(), Err(RecordError::Filter { .. })));
        for range in [0..=5, 5..=100, RangeInclusive::new(9, 3)] {
            let filter = Filter { priorities: Some(range), ..Filter::default() };
            assert!(filter.check().unwrap_err().to_string().contains("1 to 99"));
        }
        let nobody = Filter { processes: vec![u32::MAX], ..Filter::default() };
        assert!(matches!(nobody.threads(), Err(RecordError::UnknownProcess { process: u32::MAX })));
        let me = Filter { processes: vec![std::process::id()], ..Filter::default() };
        assert!(me.threads().unwrap().contains(&std::process::id()));
    }
}
