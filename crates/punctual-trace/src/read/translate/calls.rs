//! The names of system calls.

use std::collections::HashMap;

use crate::format::fields::EventFormat;

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
