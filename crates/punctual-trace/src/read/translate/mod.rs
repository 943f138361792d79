//! Translates records into [events](crate::event), by the names of events and fields.
//!
//! The location of each event's fields is looked up once; a record then costs a few loads. Unknown
//! events are counted and skipped.
//!
//! ```
//! use punctual_trace::event::Kind;
//! use punctual_trace::read::format::EventFormat;
//! use punctual_trace::read::page::Record;
//! use punctual_trace::read::translate::Translator;
//! use punctual_trace::read::Order;
//!
//! let text = "name: irq_handler_entry\nID: 225\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
//!     \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
//!     \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n";
//! let format = EventFormat::parse("irq", text.as_bytes())?;
//! let mut translator = Translator::new(Order::Little, &[format], &[]);
//!
//! let bytes = [225, 0, 0, 0, 17, 0, 0, 0, 24, 0, 0, 0];
//! let mut events = Vec::new();
//! translator.translate(1, &Record::new(1_000, &bytes), &mut events)?;
//! assert_eq!((events[0].by, events[0].kind), (17, Kind::IrqEntry { irq: 24 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entry;
mod interrupts;
mod kind;
mod names;
mod state;

use std::fmt;

use self::entry::{Entry, HEAD, Head, NOTHING, REACH, Slot, padded, resolve};
pub use self::interrupts::Interrupts;
use self::kind::Known;
pub use self::names::{Calls, Threads};
use self::state::States;
use super::{Order, marker};
use crate::event::Event;
use crate::format::fields::EventFormat;
use crate::format::page::Record;
use crate::format::recipe::{Code, recipe};

/// Translation is fastest if this many bytes may be read after a record.
pub(super) const SLACK: usize = HEAD;

/// A record that is too short for its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShortRecord {
    /// The event ID, if the record is long enough to have one.
    pub event: Option<u16>,
    /// The number of bytes it needs.
    pub needs: usize,
    /// The number of bytes it has.
    pub has: usize,
}

impl fmt::Display for ShortRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needs, has, .. } = self;
        match self.event {
            Some(event) => {
                write!(f, "a record of event {event} has {has} bytes, and its format needs {needs}")
            }
            None => write!(f, "a record has {has} bytes, too few for the number of its event"),
        }
    }
}

impl std::error::Error for ShortRecord {}

/// Returns whether two formats of `sched_switch` have the same states. A translator supports one
/// set of states.
pub(crate) fn is_read_alike(one: &EventFormat, other: &EventFormat) -> bool {
    let states = |format: &EventFormat| States::parse(&format.print).unwrap_or_default();
    states(one) == states(other)
}

/// Translates records into events.
#[derive(Debug)]
pub struct Translator {
    order: Order,
    id: Slot,
    id_end: usize,
    table: Vec<Entry>,
    /// For events not in the table.
    unknown: Entry,
    known: Known,
    incomplete: Vec<String>,
}

impl Translator {
    /// Creates a translator for records of these formats. `schedule` contains the addresses of the
    /// kernel functions that enter the scheduler, if function_graph recorded them.
    pub fn new(order: Order, formats: &[EventFormat], schedule: &[u64]) -> Self {
        // Event IDs have 16 bits and a small offset on every kernel; a format that differs is
        // ignored.
        let id = formats.first().and_then(|format| format.field("common_type"));
        let id = id.filter(|field| field.size <= 2 && usize::from(field.offset) < REACH);
        // The field has the same offset in all events of a kernel.
        let by = formats.first().and_then(|format| format.field("common_pid"));
        let by = by.filter(|field| usize::from(field.offset) < REACH);
        let by = by.and_then(|field| Slot::of(field, field.offset as u8));
        let id_end = id.map_or(2, |field| field.offset + field.size);
        let mut translator = Self {
            order,
            id: id.and_then(|field| Slot::of(field, field.offset as u8)).unwrap_or(Slot::ID),
            id_end: id_end.into(),
            table: Vec::new(),
            unknown: Entry { needs: id_end, by: by.unwrap_or(Slot::NOTHING), ..NOTHING },
            known: Known { schedule: schedule.to_vec(), ..Known::default() },
            incomplete: Vec::new(),
        };
        for format in formats {
            translator.known.interrupts.add(format);
            translator.known.calls.add(format);
            if let Some((code, fields)) = recipe(&format.system, &format.name) {
                match resolve(format, code, fields) {
                    Ok(entry) => translator.add(format, entry),
                    Err(what) => translator.incomplete.push(what),
                }
            }
        }
        translator
    }

    fn add(&mut self, format: &EventFormat, entry: Entry) {
        let id = usize::from(format.id);
        if self.table.len() <= id {
            self.table.resize(id + 1, self.unknown);
        }
        if entry.code == Code::Switch {
            self.known.states = States::parse(&format.print).unwrap_or_default();
        }
        self.table[id] = Entry { needs: entry.needs.max(self.unknown.needs), ..entry };
    }

    /// Translates a record of `cpu` and appends the event, if the analysis uses it.
    pub fn translate(
        &mut self,
        cpu: u16,
        record: &Record<'_>,
        into: &mut Vec<Event>,
    ) -> Result<(), ShortRecord> {
        self.translate_in(self.order, cpu, record, into)
    }

    /// Like `translate`, specialized for a byte order if `order` is a constant. It must be this
    /// translator's.
    #[inline(always)]
    pub(super) fn translate_in(
        &mut self,
        order: Order,
        cpu: u16,
        record: &Record<'_>,
        into: &mut Vec<Event>,
    ) -> Result<(), ShortRecord> {
        debug_assert_eq!(order, self.order);
        let Some(near) = record.window.first_chunk::<HEAD>() else {
            return self.translate_last(order, cpu, record, into);
        };
        let id = self.id.load(order, near) as u16;
        let entry = self.table.get(usize::from(id)).unwrap_or(&self.unknown);
        if record.length() < usize::from(entry.needs) {
            let event = (record.length() >= self.id_end).then_some(id);
            return Err(ShortRecord { event, needs: entry.needs.into(), has: record.length() });
        }
        let gathered;
        let head = match entry.far {
            false => near,
            true => {
                gathered = entry.gather(record.window);
                &gathered
            }
        };
        if let Some(kind) = self.known.kind(order, id, entry, head, record) {
            let by = entry.by.load(order, head) as u32;
            let event = Event { time: record.time, cpu, by, kind };
            if entry.comms[0] != 0 {
                self.known.names(entry, record, &event, into);
            }
            into.push(event);
        }
        Ok(())
    }

    /// The same for a record with few bytes after it: at the end of the data, or by itself.
    #[cold]
    fn translate_last(
        &mut self,
        order: Order,
        cpu: u16,
        record: &Record<'_>,
        into: &mut Vec<Event>,
    ) -> Result<(), ShortRecord> {
        let head: Head = padded(record.window, 0);
        self.translate_in(order, cpu, &Record { window: &head, ..*record }, into)
    }

    /// Also passes on events that the analysis does not understand:
    /// [`Kind::Other`](crate::event::Kind::Other).
    pub fn want_others(&mut self) {
        self.known.others = true;
    }

    /// Sets the address of the function of the timers that replenish SCHED_DEADLINE threads:
    /// [`Kind::BudgetTimerStart`](crate::event::Kind::BudgetTimerStart).
    pub fn set_budget_timer(&mut self, function: u64) {
        self.known.budget_timer = function;
    }

    /// Returns the number of skipped records, by event ID.
    pub fn skipped(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(&self.known.skipped).filter(|(_, count)| **count > 0).map(|(id, &count)| (id, count))
    }

    /// Returns the events that are skipped although they are needed, because the kernel's version
    /// lacks a field.
    pub fn incomplete(&self) -> &[String] {
        &self.incomplete
    }

    /// Returns the thread names that have occurred so far.
    pub fn threads(&self) -> &Threads {
        &self.known.threads
    }

    /// Returns the thread names mutably, to add names from other sources.
    pub fn threads_mut(&mut self) -> &mut Threads {
        &mut self.known.threads
    }

    /// Returns the interrupt names that have occurred so far.
    pub fn interrupts(&self) -> &Interrupts {
        &self.known.interrupts
    }

    /// Returns the system call names that have occurred so far.
    pub fn calls(&self) -> &Calls {
        &self.known.calls
    }

    /// Returns the names of the tasks of Punctual apps, by the number in
    /// [`Kind::JobStart`](crate::event::Kind::JobStart).
    pub fn tasks(&self) -> &marker::Tasks {
        &self.known.tasks
    }
}

#[cfg(test)]
mod tests;
