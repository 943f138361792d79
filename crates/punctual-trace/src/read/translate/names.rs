//! The names of threads.

use std::collections::HashMap;

use crate::event::Tid;

/// A trace that names more threads than this is not believed; what it names after that stays nameless.
const LIMIT: usize = 1 << 17;
/// How many of the last names are kept where comparing is cheap.
const RECENT: usize = 1 << 10;

/// The names of threads; of several that one had, the last.
#[derive(Debug)]
pub struct Threads {
    known: HashMap<Tid, Box<str>>,
    recent: Vec<(Tid, [u8; 16])>,
}

impl Default for Threads {
    fn default() -> Self {
        Self { known: HashMap::new(), recent: vec![(0, [0; 16]); RECENT] }
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

    /// Names a thread.
    pub fn insert(&mut self, thread: Tid, name: &str) {
        if thread != 0 && (self.known.len() < LIMIT || self.known.contains_key(&thread)) {
            self.known.insert(thread, name.into());
        }
    }

    /// Takes the names of a file `saved_cmdlines`: a number, a space and a name in each line.
    pub fn insert_lines(&mut self, lines: &[u8]) {
        for line in String::from_utf8_lossy(lines).lines() {
            if let Some((thread, name)) = line.trim_start().split_once(' ')
                && let Ok(thread) = thread.parse()
            {
                self.insert(thread, name);
            }
        }
    }

    /// Takes the name that a switch to the thread has, which it nearly always has had before.
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
        let name = String::from_utf8_lossy(&name[..end]);
        if self.get(thread) != Some(&name) {
            self.insert(thread, &name);
        }
    }
}
