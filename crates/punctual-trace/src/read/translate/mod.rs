//! From records to [events](crate::event), by the names of events and fields.
//!
//! Where the fields of each event are is looked up once; a record then costs a few loads. Events that nothing here knows
//! are left out and counted.
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

mod interrupts;
mod names;
mod recipe;
mod slot;
mod state;

use std::fmt;

pub use interrupts::Interrupts;
pub use names::Threads;
pub(crate) use recipe::{Code, recipe};

use self::slot::Slot;
use self::state::States;
use super::format::{EventFormat, Shape};
use super::page::Record;
use super::{Order, marker};
use crate::event::{Event, Kind, Task};

/// Most fields an event here is made of.
const SLOTS: usize = 5;

#[derive(Debug, Clone, Copy)]
struct Entry {
    code: Code,
    /// The shortest record that has all the fields.
    needs: u16,
    by: Slot,
    slots: [Slot; SLOTS],
}

const NOTHING: Entry =
    Entry { code: Code::Unknown, needs: 0, by: Slot::NOTHING, slots: [Slot::NOTHING; SLOTS] };

/// A record that is too short for its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordError {
    /// The number of the event, if the record has even that.
    pub event: Option<u16>,
    /// How many bytes it needs.
    pub needs: usize,
    /// How many it has.
    pub has: usize,
}

impl fmt::Display for RecordError {
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

impl std::error::Error for RecordError {}

/// Makes events of records.
#[derive(Debug)]
pub struct Translator {
    order: Order,
    id: Slot,
    id_end: usize,
    table: Vec<Entry>,
    states: States,
    comm: Option<usize>,
    schedule: Vec<u64>,
    threads: Threads,
    tasks: marker::Tasks,
    interrupts: Interrupts,
    skipped: Vec<u64>,
    incomplete: Vec<String>,
}

impl Translator {
    /// For records of these formats; `schedule` has the addresses of the functions of the kernel that enter the
    /// scheduler, if function_graph recorded them.
    pub fn new(order: Order, formats: &[EventFormat], schedule: &[u64]) -> Self {
        // The numbers of events have 16 bits everywhere; a format that says otherwise is not believed.
        let id =
            formats.first().and_then(|format| format.field("common_type")).filter(|field| field.size <= 2);
        let mut translator = Self {
            order,
            id: id.and_then(Slot::of).unwrap_or(Slot::ID),
            id_end: id.map_or(2, |field| usize::from(field.offset + field.size)),
            table: Vec::new(),
            states: States::default(),
            comm: None,
            schedule: schedule.to_vec(),
            threads: Threads::default(),
            tasks: marker::Tasks::default(),
            interrupts: Interrupts::default(),
            skipped: Vec::new(),
            incomplete: Vec::new(),
        };
        for format in formats {
            translator.interrupts.add(format);
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
            self.table.resize(id + 1, NOTHING);
        }
        if entry.code == Code::Switch {
            self.states = States::parse(&format.print).unwrap_or_default();
            let comm = format.field("next_comm");
            let comm = comm.filter(|field| field.shape == Shape::Array(16) && field.size == 16);
            self.comm = comm.map(|field| usize::from(field.offset));
        }
        self.table[id] = entry;
    }

    /// Makes an event of a record of `cpu` and appends it, unless the analysis has no use for it.
    #[inline]
    pub fn translate(
        &mut self,
        cpu: u16,
        record: &Record<'_>,
        into: &mut Vec<Event>,
    ) -> Result<(), RecordError> {
        if record.length() < self.id_end {
            return Err(RecordError { event: None, needs: self.id_end, has: record.length() });
        }
        let window = record.window;
        let id = usize::from(self.id.load(self.order, window) as u16);
        let entry = match self.table.get(id) {
            Some(entry) if entry.code != Code::Unknown => entry,
            _ => {
                self.skip(id);
                return Ok(());
            }
        };
        if record.length() < usize::from(entry.needs) {
            let needs = usize::from(entry.needs);
            return Err(RecordError { event: Some(id as u16), needs, has: record.length() });
        }
        let order = self.order;
        let get = |slot: usize| entry.slots[slot].load(order, window);
        let task = |slot| Task { id: get(slot) as u32, priority: get(slot + 1) as i32 };
        let kind = match entry.code {
            Code::Switch => {
                let (from, to) = (task(0), task(3));
                if let Some(comm) = self.comm.and_then(|at| window.get(at..)?.first_chunk()) {
                    self.threads.see(to.id, comm);
                }
                Kind::Switch { from, left: self.states.left(get(2)), to }
            }
            Code::Waking => Kind::Waking { task: task(0), cpu: get(2) as u16 },
            Code::Wakeup => Kind::Wakeup { task: task(0), cpu: get(2) as u16, new: false },
            Code::WakeupNew => Kind::Wakeup { task: task(0), cpu: get(2) as u16, new: true },
            Code::Migrate => Kind::Migrate { task: task(0), from: get(2) as u16, to: get(3) as u16 },
            Code::Inherit => Kind::Inherit { task: get(0) as u32, old: get(1) as i32, new: get(2) as i32 },
            Code::IrqEntry => {
                let irq = get(0) as u32;
                self.interrupts.see_irq(irq, order, window, record.length());
                Kind::IrqEntry { irq }
            }
            Code::IrqExit => Kind::IrqExit { irq: get(0) as u32 },
            Code::VectorEntry => {
                let vector = get(0) as u16;
                self.interrupts.see_vector(vector, id as u16);
                Kind::VectorEntry { vector }
            }
            Code::VectorExit => Kind::VectorExit { vector: get(0) as u16 },
            Code::SoftirqEntry => Kind::SoftirqEntry { softirq: get(0) as u8 },
            Code::SoftirqExit => Kind::SoftirqExit { softirq: get(0) as u8 },
            Code::TimerStart => Kind::TimerStart { timer: get(0), expires: get(1) },
            Code::TimerExpire => Kind::TimerExpire { timer: get(0), now: get(1) },
            Code::TimerExpired => Kind::TimerExpired { timer: get(0) },
            Code::ContentionBegin => Kind::ContentionBegin { lock: get(0), flags: get(1) as u32 },
            Code::ContentionEnd => Kind::ContentionEnd { lock: get(0) },
            Code::FutexEnter => {
                Kind::FutexEnter { word: get(0), operation: get(1) as u32, value: get(2) as u32 }
            }
            Code::FutexWait => futex2(FUTEX_WAIT_BITSET, get(0), get(1), get(2)),
            Code::FutexWake => futex2(FUTEX_WAKE_BITSET, get(0), get(1), get(2)),
            Code::FutexExit => Kind::FutexExit { result: get(0) as i64 },
            Code::SyscallEnter => Kind::SyscallEnter { number: get(0) as u32 },
            Code::SyscallExit => Kind::SyscallExit { number: get(0) as u32 },
            Code::GraphEntry if self.schedule.contains(&get(0)) => Kind::ScheduleEnter,
            Code::GraphExit if self.schedule.contains(&get(0)) => Kind::ScheduleExit,
            Code::ScheduleEnter => Kind::ScheduleEnter,
            Code::ScheduleExit => Kind::ScheduleExit,
            Code::JobStart => Kind::JobStart { task: get(0) as u16, released: get(1) },
            Code::JobEnd => Kind::JobEnd { task: get(0) as u16 },
            Code::Marker => {
                let content = &record.data()[usize::from(entry.needs)..];
                match self.tasks.decode(order, get(0) as u32, content) {
                    Some(kind) => kind,
                    None => return Ok(()),
                }
            }
            Code::GraphEntry | Code::GraphExit | Code::Unknown => {
                self.skip(id);
                return Ok(());
            }
        };
        let by = entry.by.load(order, window) as u32;
        into.push(Event { time: record.time, cpu, by, kind });
        Ok(())
    }

    #[cold]
    fn skip(&mut self, id: usize) {
        if self.skipped.len() <= id {
            self.skipped.resize(id + 1, 0);
        }
        self.skipped[id] += 1;
    }

    /// How many records were left out, by the number of their event.
    pub fn skipped(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(&self.skipped).filter(|(_, count)| **count > 0).map(|(id, &count)| (id, count))
    }

    /// What is left out although the analysis has a use for it, because the kernel's event lacks a field.
    pub fn incomplete(&self) -> &[String] {
        &self.incomplete
    }

    /// The names of threads, as far as they have been seen.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The same, to add what is known from elsewhere.
    pub fn threads_mut(&mut self) -> &mut Threads {
        &mut self.threads
    }

    /// The names of interrupts, as far as they have been seen.
    pub fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// The names of the tasks of Punctual apps, by the number in [`Kind::JobStart`].
    pub fn tasks(&self) -> &marker::Tasks {
        &self.tasks
    }
}

/// The operations of `futex(2)` that `futex_wait(2)` and `futex_wake(2)` are.
const FUTEX_WAIT_BITSET: u32 = 9;
const FUTEX_WAKE_BITSET: u32 = 10;
/// The flag for private futexes has the same value in all of them.
const FUTEX_PRIVATE: u64 = 128;

fn futex2(operation: u32, word: u64, value: u64, flags: u64) -> Kind {
    Kind::FutexEnter { word, operation: operation | (flags & FUTEX_PRIVATE) as u32, value: value as u32 }
}

fn resolve(format: &EventFormat, code: Code, fields: &[&str]) -> Result<Entry, String> {
    let mut needs = 0;
    let mut find = |names: &str| {
        let field = names.split('|').find_map(|name| format.field(name)).ok_or_else(|| {
            format!("{}:{} has no field `{names}`, so its records are left out", format.system, format.name)
        })?;
        needs = needs.max(field.offset + field.size);
        Slot::of(field).ok_or_else(|| {
            let EventFormat { system, name, .. } = format;
            format!("{system}:{name}: `{names}` has {} bytes, so its records are left out", field.size)
        })
    };
    let by = find("common_pid")?;
    let mut slots = [Slot::NOTHING; SLOTS];
    for (slot, names) in slots.iter_mut().zip(fields) {
        *slot = find(names)?;
    }
    Ok(Entry { code, needs, by, slots })
}

#[cfg(test)]
mod tests;
