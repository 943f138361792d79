//! The names of threads.

use std::collections::HashMap;

use crate::event::Tid;

/// Names of further threads are ignored: no system has more.
const LIMIT: usize = 1 << 17;
/// How many of the last names are kept where comparing is cheap.
const RECENT: usize = 1 << 10;
/// How many of the last changes are remembered one by one.
const CHANGES: usize = 1 << 10;

/// The names of threads; the latest if there were several.
#[derive(Debug)]
pub struct Threads {
    known: HashMap<Tid, Box<str>>,
    recent: Vec<(Tid, [u8; 16])>,
    /// Who got the latest names; that of change `n` is at `n % CHANGES`.
    changed: Vec<Tid>,
    changes: u64,
}

impl Default for Threads {
    fn default() -> Self {
        let (recent, changed) = (vec![(0, [0; 16]); RECENT], vec![0; CHANGES]);
        Self { known: HashMap::new(), recent, changed, changes: 0 }
    }
}

impl Threads {
    /// The name of that thread.
    pub fn get(&self, thread: Tid) -> Option<&str> {
        if thread == 0 {
            return Some("idle");
        }
        self.known.get(&thread).map(|name| &**name)
    }

    /// Every name.
    pub fn iter(&self) -> impl Iterator<Item = (Tid, &str)> {
        self.known.iter().map(|(&thread, name)| (thread, &**name))
    }

    /// How often a thread has got a name, or another one.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The names given since the number of [changes](Self::changes) was this, for callers that keep names of
    /// their own. All names if that was long ago.
    pub fn since(&self, changes: u64) -> impl Iterator<Item = (Tid, &str)> {
        let few = self.changes.saturating_sub(changes) <= CHANGES as u64;
        let range = if few { changes..self.changes } else { 0..0 };
        let latest = range.map(|change| self.changed[change as usize % CHANGES]);
        let latest = latest.filter_map(|thread| Some((thread, self.known.get(&thread)?.as_ref())));
        latest.chain((!few).then(|| self.iter()).into_iter().flatten())
    }

    /// Names a thread.
    pub fn insert(&mut self, thread: Tid, name: &str) {
        let known = self.known.get(&thread);
        let room = self.known.len() < LIMIT || known.is_some();
        if thread != 0 && room && known.is_none_or(|known| **known != *name) {
            self.known.insert(thread, name.into());
            self.changed[self.changes as usize % CHANGES] = thread;
            self.changes += 1;
        }
    }

    /// Takes names from a `saved_cmdlines` file: a TID, a space and a name on each line.
    pub fn insert_lines(&mut self, lines: &[u8]) {
        for line in String::from_utf8_lossy(lines).lines() {
            if let Some((thread, name)) = line.trim_start().split_once(' ')
                && let Ok(thread) = thread.parse()
            {
                self.insert(thread, name);
            }
        }
    }

    /// Takes the name in a switch to the thread, which rarely is a new one.
    #[inline]
    pub(super) fn see(&mut self, thread: Tid, name: &[u8; 16]) {
        let recent = &mut self.recent[thread as usize % RECENT];
        if thread != 0 && *recent != (thread, *name) {
            *recent = (thread, *name);
            self.rename(thread, name);
        }
    }

    #[cold]
    fn rename(&mut self, thread: Tid, name: &[u8; 16]) {
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        self.insert(thread, &String::from_utf8_lossy(&name[..end]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_each_change_once() {
        let mut threads = Threads::default();
        threads.insert_lines(b"7 sh\n9 cat\n");
        assert_eq!(threads.since(0).collect::<Vec<_>>(), [(7, "sh"), (9, "cat")]);
        let seen = threads.changes();
        threads.insert(9, "cat");
        assert_eq!(threads.changes(), seen, "it had the name before");
        threads.insert(7, "app");
        threads.insert(0, "idle");
        assert_eq!(threads.since(seen).collect::<Vec<_>>(), [(7, "app")]);
        assert_eq!(threads.since(threads.changes()).count(), 0);
    }

    #[test]
    fn returns_all_names_after_many_changes() {
        let mut threads = Threads::default();
        let many = 3 * CHANGES as u32;
        (1..=many).for_each(|thread| threads.insert(thread, "worker"));
        assert_eq!(threads.since(1).count(), many as usize);
        assert_eq!(threads.since(u64::from(many) - 5).count(), 5);
    }
}
