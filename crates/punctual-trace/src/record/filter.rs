//! Which threads are traced, and what the kernel can do about the others.
//!
//! Whoever preempts a traced thread, or holds what it waits for, matters to its jobs, so the events of the scheduler and of
//! interrupts are those of all threads, unless a recording is [narrow](super::Config::narrow). System calls are frequent and
//! matter only of the traced threads.

use std::fs;
use std::ops::RangeInclusive;

use super::error::RecordError;
use crate::event::Tid;

/// The threads that are traced; those that fulfil any of these. All of them if nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Processes, with all their threads and what those start, or single threads.
    pub processes: Vec<Tid>,
    /// Names of threads, of which the kernel knows fifteen bytes.
    pub names: Vec<String>,
    /// Real-time priorities, 1 the lowest and 99 the highest.
    pub priorities: Option<RangeInclusive<u8>>,
}

impl Filter {
    /// Whether all threads are traced.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.names.is_empty() && self.priorities.is_none()
    }

    /// Whether threads are chosen by what started them alone, and new ones are followed by that.
    pub(super) fn is_by_process(&self) -> bool {
        !self.processes.is_empty() && self.names.is_empty() && self.priorities.is_none()
    }

    /// Checks what can be checked before anything is recorded.
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

    /// The threads of the processes, and those with such priorities, as they are now.
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

    /// The first and the last of the priorities, as the kernel counts: the other way round.
    pub(super) fn kernel_priorities(&self) -> Option<(i32, i32)> {
        self.priorities.as_ref().map(|range| (99 - i32::from(*range.end()), 99 - i32::from(*range.start())))
    }

    /// A condition in the kernel's language for an event that names a thread in these fields.
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

/// What the kernel keeps of a name.
pub(super) fn kernel_name(name: &str) -> &str {
    let mut end = name.len().min(15);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// All threads there are, with their processes.
pub(super) fn all_threads() -> impl Iterator<Item = (Tid, Tid)> {
    numbers("/proc").flat_map(|process| threads_of(process).map(move |thread| (thread, process)))
}

/// The threads of a process; none if there is no such process.
pub(super) fn threads_of(process: Tid) -> impl Iterator<Item = Tid> {
    numbers(&format!("/proc/{process}/task"))
}

/// The entries of a directory of `/proc` that are numbers.
fn numbers(path: &str) -> impl Iterator<Item = Tid> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The real-time priority of a thread, if it has one.
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
