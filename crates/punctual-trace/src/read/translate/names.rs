//! Names of threads and of system calls.
//!
//! A list of names (`saved_cmdlines`) contains the last name of each thread. Records of the
//! scheduler contain the current one, which becomes an event ([`Named`](crate::event::Kind::Named))
//! before the event of the record. The CPUs are decoded in turn, each ahead of the delivered
//! events, so a name that one CPU has sent may be later than the next events of another. So each
//! CPU sends the name of a thread once, and every time if the thread has had several names.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::event::{Comm, Tid};
use crate::format::fields::EventFormat;
use crate::jobs::IntHasher;

/// Linux has no more CPUs.
const MAX_CPUS: usize = 8192;
/// Maximum number of names of threads, and of names sent by all CPUs. Beyond it, all names are
/// forgotten and sent again.
const MAX_NAMES: usize = 1 << 17;
/// Number of recent names per CPU that are compared without a search.
const RECENT: usize = 1 << 8;

type Bytes = [u8; 16];
type ByThread<T> = HashMap<Tid, T, BuildHasherDefault<IntHasher>>;

/// Latest decoded names of threads.
#[derive(Debug, Default)]
pub struct Threads {
    known: ByThread<Known>,
    cpus: Vec<Option<Box<Shown>>>,
    /// Number of names that all CPUs have sent.
    sent: usize,
}

#[derive(Debug)]
struct Known {
    name: Comm,
    /// A record has shown it.
    shown: bool,
    /// Records have shown another name before.
    several: bool,
}

/// Names that the records of a CPU have shown.
#[derive(Debug)]
struct Shown {
    recent: [(Tid, Bytes); RECENT],
    /// Thread that was switched in last.
    running: (Tid, Bytes),
    sent: ByThread<Comm>,
}

impl Default for Shown {
    fn default() -> Self {
        Self { recent: [(0, [0; 16]); RECENT], running: (0, [0; 16]), sent: ByThread::default() }
    }
}

impl Threads {
    /// The name of a thread.
    pub fn get(&self, thread: Tid) -> Option<Comm> {
        if thread == 0 {
            return Some(Comm::new("idle"));
        }
        self.known.get(&thread).map(|known| known.name)
    }

    /// The name of every thread.
    pub fn iter(&self) -> impl Iterator<Item = (Tid, Comm)> {
        self.known.iter().map(|(&thread, known)| (thread, known.name))
    }

    /// Names a thread, until a record shows its name.
    pub fn insert(&mut self, thread: Tid, name: &str) {
        let room = self.known.len() < MAX_NAMES || self.known.contains_key(&thread);
        if thread != 0 && room {
            self.known.insert(thread, Known { name: Comm::new(name), shown: false, several: false });
        }
    }

    /// Adds names from a `saved_cmdlines` file: a TID, a space and a name on each line.
    pub fn insert_lines(&mut self, lines: &[u8]) {
        for line in String::from_utf8_lossy(lines).lines() {
            if let Some((thread, name)) = line.trim_start().split_once(' ')
                && let Ok(thread) = thread.parse()
            {
                self.insert(thread, name);
            }
        }
    }

    /// Processes a name in a record of `cpu`. Returns it if it has to be sent.
    #[inline]
    pub(super) fn see(&mut self, cpu: u16, thread: Tid, bytes: &Bytes) -> Option<Comm> {
        let Some(Some(shown)) = self.cpus.get(usize::from(cpu)) else {
            return self.note_new(cpu, thread, bytes);
        };
        if shown.recent[thread as usize % RECENT] == (thread, *bytes) || thread == 0 {
            return None;
        }
        self.note_new(cpu, thread, bytes)
    }

    /// The same for the previous thread of a switch, which ran there since it was switched in.
    #[inline]
    pub(super) fn note_switched_out(&mut self, cpu: u16, thread: Tid, bytes: &Bytes) -> Option<Comm> {
        match self.cpus.get(usize::from(cpu)) {
            Some(Some(shown)) if shown.running == (thread, *bytes) => None,
            _ => self.see(cpu, thread, bytes),
        }
    }

    /// The same for the next thread of a switch.
    #[inline]
    pub(super) fn note_switched_in(&mut self, cpu: u16, thread: Tid, bytes: &Bytes) -> Option<Comm> {
        let name = self.see(cpu, thread, bytes);
        if let Some(Some(shown)) = self.cpus.get_mut(usize::from(cpu)) {
            shown.running = (thread, *bytes);
        }
        name
    }

    /// The same for a new thread. Earlier names of its ID belong to another thread.
    pub(super) fn note_created(&mut self, cpu: u16, thread: Tid, bytes: &Bytes) -> Option<Comm> {
        self.see(cpu, thread, bytes);
        let name = Comm::from_bytes(*bytes);
        (thread != 0 && !name.is_empty()).then_some(name)
    }

    #[cold]
    fn note_new(&mut self, cpu: u16, thread: Tid, bytes: &Bytes) -> Option<Comm> {
        let (name, at) = (Comm::from_bytes(*bytes), usize::from(cpu));
        if thread == 0 || name.is_empty() || at >= MAX_CPUS {
            return None;
        }
        if self.known.len() >= MAX_NAMES || self.sent >= MAX_NAMES {
            *self = Self::default();
        }
        if self.cpus.len() <= at {
            self.cpus.resize_with(at + 1, || None);
        }
        if self.has_several(thread, name) {
            return Some(name);
        }
        let shown = self.cpus[at].get_or_insert_default();
        shown.recent[thread as usize % RECENT] = (thread, *bytes);
        let is_new = shown.sent.insert(thread, name) != Some(name);
        self.sent += usize::from(is_new);
        is_new.then_some(name)
    }

    /// Records a name; returns whether the thread has had several.
    fn has_several(&mut self, thread: Tid, name: Comm) -> bool {
        let known = self.known.entry(thread).or_insert(Known { name, shown: true, several: false });
        let is_renamed = known.shown && known.name != name;
        (known.name, known.shown) = (name, true);
        if is_renamed && !known.several {
            known.several = true;
            for shown in self.cpus.iter_mut().flatten() {
                let recent = &mut shown.recent[thread as usize % RECENT];
                if recent.0 == thread {
                    *recent = (0, [0; 16]);
                }
            }
        }
        known.several
    }
}

/// Calls with higher numbers stay nameless; Linux has about 470.
const LIMIT: usize = 1024;

/// The names of system calls, learned from their own events: the format has the name, the records
/// have the number.
#[derive(Debug, Default)]
pub struct Calls {
    /// The names in the formats, by event ID.
    events: HashMap<u16, String>,
    /// The event that has named a call, by the number of the call.
    named_by: Vec<u16>,
    changes: u64,
}

impl Calls {
    /// Returns the names that have occurred.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let named = (0..).zip(&self.named_by);
        named.filter_map(|(number, event)| Some((number, self.events.get(event)?.as_str())))
    }

    /// Returns how many are known.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn add(&mut self, format: &EventFormat) {
        if format.system == "syscalls"
            && let Some(name) = format.name.strip_prefix("sys_enter_")
        {
            self.named_by.resize(LIMIT, 0);
            self.events.insert(format.id, name.to_owned());
        }
    }

    /// Handles that event, which shows that a call is entered.
    #[inline]
    pub(super) fn see(&mut self, number: u32, event: u16) {
        if self.named_by.get(number as usize).is_some_and(|&named_by| named_by != event) {
            self.name(number, event);
        }
    }

    #[cold]
    fn name(&mut self, number: u32, event: u16) {
        // An event for all calls names none.
        if self.events.contains_key(&event) {
            self.named_by[number as usize] = event;
            self.changes += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &str) -> Bytes {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    #[test]
    fn sends_name_once_per_cpu() {
        let mut threads = Threads::default();
        threads.insert_lines(b"7 after\n9 cat\n");
        assert_eq!(threads.get(7), Some(Comm::new("after")));
        for cpu in [0, 1] {
            assert_eq!(threads.note_switched_in(cpu, 7, &bytes("app")), Some(Comm::new("app")), "CPU {cpu}");
            assert_eq!(threads.note_switched_out(cpu, 7, &bytes("app")), None);
            assert_eq!(threads.see(cpu, 7, &bytes("app")), None);
            assert_eq!(threads.see(cpu, 7 + RECENT as Tid, &bytes("other")), Some(Comm::new("other")));
            assert_eq!(
                threads.see(cpu, 7, &bytes("app")),
                None,
                "another thread at its place changes nothing"
            );
        }
        assert_eq!(threads.get(7), Some(Comm::new("app")), "a list comes after what records show");
        assert_eq!(threads.see(0, 9, &[0; 16]), None, "without a name in the record the list counts");
        assert_eq!(threads.get(9), Some(Comm::new("cat")));
        assert_eq!(threads.see(0, 0, &bytes("swapper")), None);
        assert_eq!(
            threads.note_created(0, 7, &bytes("app")),
            Some(Comm::new("app")),
            "another of the same name"
        );
    }

    /// A CPU that was decoded first may have sent a name that was changed in between.
    #[test]
    fn repeats_all_names_of_renamed_threads() {
        let mut threads = Threads::default();
        assert!(threads.see(0, 7, &bytes("one")).is_some() && threads.see(1, 7, &bytes("one")).is_some());
        assert_eq!(threads.see(1, 7, &bytes("two")), Some(Comm::new("two")));
        for _ in 0..2 {
            assert_eq!(threads.note_switched_in(0, 7, &bytes("one")), Some(Comm::new("one")));
            assert_eq!(threads.note_switched_out(0, 7, &bytes("one")), None, "it ran there all the time");
            assert_eq!(threads.note_switched_in(1, 7, &bytes("two")), Some(Comm::new("two")));
        }
        assert_eq!(
            threads.note_switched_out(1, 7, &bytes("three")),
            Some(Comm::new("three")),
            "renamed while it ran"
        );
    }

    #[test]
    fn bounds_memory_for_any_number_of_names() {
        let mut threads = Threads::default();
        for thread in 1..3 * MAX_NAMES as Tid {
            assert!(threads.see(0, thread, &bytes("worker")).is_some());
        }
        assert!(threads.known.len() <= MAX_NAMES && threads.sent <= MAX_NAMES);
        assert_eq!(threads.see(9_000, 1, &bytes("worker")), None, "no such CPU");
    }
}
