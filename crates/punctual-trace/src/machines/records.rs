//! Rewrites records of another machine: its own numbers are offset, and its times converted to the
//! first machine's clock.

use std::collections::HashMap;

use super::exchange;
use super::{IRQS, TASKS, THREADS};
use crate::format::Order;
use crate::format::fields::{EventFormat, Shape};
use punctual_core::trace_marker;

/// Contents of a field that differ between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Thread,
    Cpu,
    Irq,
    /// A time of CLOCK_MONOTONIC.
    Time,
    /// An address in memory, which identifies related events.
    Address,
    /// The function of a timer.
    Function,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    at: usize,
    size: usize,
    holds: Holds,
}

/// Rewrites the records of a machine.
#[derive(Debug)]
pub(super) struct Machine {
    /// Number of machines before it.
    pub(super) index: usize,
    /// Number of CPUs of those machines.
    pub(super) cpus: u16,
    /// For each of its events, the new number and the changes to its records.
    events: HashMap<u16, (u16, Vec<Change>)>,
    /// The event of marks, and the offset of their type.
    marks: Option<(u16, usize)>,
    /// The address of the timer function of SCHED_DEADLINE threads, and its replacement.
    pub(super) budget_timer: (u64, u64),
    /// True if timers use the trace's clock.
    pub(super) is_monotonic: bool,
}

impl Machine {
    /// Creates the rewriter for these formats; `next` assigns event numbers.
    pub(super) fn new(index: usize, formats: &[EventFormat], mut next: impl FnMut() -> u16) -> Self {
        let change = |format: &EventFormat| {
            let fields = format.fields.iter().filter(|field| field.shape == Shape::Plain);
            let changes = fields.filter_map(|field| {
                let holds = holds(&format.system, &format.name, &field.name)?;
                let (at, size) = (field.offset.into(), field.size.into());
                [1, 2, 4, 8].contains(&size).then_some(Change { at, size, holds })
            });
            changes.collect::<Vec<_>>()
        };
        let events = formats.iter().map(|format| (format.id, (next(), change(format)))).collect();
        let marks = formats.iter().find(|format| format.system == "ftrace" && format.name == "raw_data");
        let marks = marks.and_then(|format| Some((format.id, usize::from(format.field("id")?.offset))));
        Self { index, cpus: 0, events, marks, budget_timer: (0, 0), is_monotonic: false }
    }

    /// Returns the new number of an event.
    pub(super) fn event(&self, id: u16) -> Option<u16> {
        self.events.get(&id).map(|(id, _)| *id)
    }

    /// Returns the message that a record marks, if any.
    pub(super) fn message(&self, record: &[u8]) -> Option<(u64, bool)> {
        let (event, at) = self.marks?;
        let order = Order::NATIVE;
        if order.u16(record, 0)? != event {
            return None;
        }
        exchange::read(order.u32(record, at)?, record.get(at + 4..)?)
    }

    /// Returns the new number of a thread; idle threads keep theirs.
    pub(super) fn thread(&self, thread: u32) -> u32 {
        if thread == 0 { 0 } else { thread.saturating_add(THREADS * self.index as u32) }
    }

    /// Rewrites a record for the merged recording; `first` converts times of this machine to times
    /// of the first. Returns whether its event is known.
    pub(super) fn change(&self, record: &mut [u8], first: impl Fn(u64) -> u64) -> bool {
        let order = Order::NATIVE;
        let Some(id) = order.u16(record, 0) else { return false };
        let Some((number, changes)) = self.events.get(&id) else { return false };
        self.change_mark(record, id, &first);
        record[..2].copy_from_slice(&number.to_ne_bytes());
        let step = self.index as u64;
        for &Change { at, size, holds } in changes {
            let Some(bytes) = record.get_mut(at..at + size) else { continue };
            let value = load(bytes);
            let value = match holds {
                Holds::Thread => u64::from(self.thread(value as u32)),
                Holds::Cpu => value.wrapping_add(self.cpus.into()),
                Holds::Irq => value.wrapping_add(step * u64::from(IRQS)),
                // A timer may have expired before the first machine ran, or may never expire.
                Holds::Time if self.is_monotonic && value < NEVER => first(value),
                Holds::Time => value,
                Holds::Address if size == 8 => value ^ step << 52,
                Holds::Address => value,
                Holds::Function if value == self.budget_timer.0 => self.budget_timer.1,
                Holds::Function => value,
            };
            store(bytes, value);
        }
        true
    }

    /// Rewrites the task number in a mark of a Punctual app, and the release, a time of
    /// CLOCK_MONOTONIC.
    fn change_mark(&self, record: &mut [u8], id: u16, first: &impl Fn(u64) -> u64) {
        let Some((_, at)) = self.marks.filter(|(event, _)| *event == id) else { return };
        let kind = Order::NATIVE.u32(record, at).unwrap_or(0);
        // Number of times after the task number.
        let times = match kind {
            trace_marker::START => 1,
            trace_marker::OFFLINE_JOB => 3,
            trace_marker::END | trace_marker::NAME => 0,
            _ => return,
        };
        if let Some(bytes) = record.get_mut(at + 4..at + 6) {
            let task = load(bytes) as u16;
            store(bytes, task.wrapping_add(TASKS.wrapping_mul(self.index as u16)).into());
        }
        for bytes in record.get_mut(at + 8..).unwrap_or_default().chunks_exact_mut(8).take(times) {
            if self.is_monotonic {
                let time = load(bytes);
                store(bytes, first(time));
            }
        }
    }
}

/// Larger times mean that a timer never expires.
const NEVER: u64 = 1 << 62;

fn holds(system: &str, event: &str, field: &str) -> Option<Holds> {
    Some(match (system, field) {
        (_, "common_pid" | "pid" | "prev_pid" | "next_pid" | "parent_pid" | "child_pid" | "oldpid") => {
            Holds::Thread
        }
        ("sched", "target_cpu" | "orig_cpu" | "dest_cpu") => Holds::Cpu,
        ("irq", "irq") => Holds::Irq,
        ("timer", "expires" | "softexpires" | "now") if event.starts_with("hrtimer") => Holds::Time,
        ("timer", "hrtimer") | ("lock", "lock_addr") | ("syscalls", "uaddr" | "uaddr2") => Holds::Address,
        ("timer", "function") => Holds::Function,
        _ => return None,
    })
}

fn load(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    match cfg!(target_endian = "big") {
        true => eight[8 - bytes.len()..].copy_from_slice(bytes),
        false => eight[..bytes.len()].copy_from_slice(bytes),
    }
    u64::from_ne_bytes(eight)
}

fn store(bytes: &mut [u8], value: u64) {
    let eight = value.to_ne_bytes();
    let size = bytes.len();
    bytes.copy_from_slice(if cfg!(target_endian = "big") { &eight[8 - size..] } else { &eight[..size] });
}

/// Returns the text of a format, with that number.
pub(super) fn text(format: &EventFormat, id: u16) -> String {
    let mut text = format!("name: {}\nID: {id}\nformat:\n", format.name);
    // libtraceevent requires an empty line after the fields that all events share.
    let own = format.fields.iter().position(|field| !field.name.starts_with("common_"));
    let own = own.unwrap_or(format.fields.len());
    for (index, field) in format.fields.iter().enumerate() {
        let name = &field.name;
        if index == own {
            text += "\n";
        }
        let integer = match (field.size, field.signed) {
            (1, true) => "signed char",
            (1, false) => "unsigned char",
            (2, true) => "short",
            (2, false) => "unsigned short",
            (4, true) => "int",
            (4, false) => "unsigned int",
            (_, true) => "long",
            (_, false) => "unsigned long",
        };
        let declaration = match field.shape {
            Shape::Plain => format!("{integer} {name}"),
            Shape::Array(count) => {
                let of = if usize::from(count) == usize::from(field.size) { "char" } else { "unsigned long" };
                format!("{of} {name}[{count}]")
            }
            Shape::Located => format!("__data_loc char[] {name}"),
            Shape::LocatedAfter => format!("__rel_loc char[] {name}"),
        };
        let (offset, size, signed) = (field.offset, field.size, u8::from(field.signed));
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    if own == format.fields.len() {
        text += "\n";
    }
    text + "\nprint fmt: " + if format.print.is_empty() { "\"\"" } else { format.print.trim() } + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::formats;

    #[test]
    fn written_formats_read_identically() {
        for format in formats::all() {
            let text = text(&format, format.id);
            let again = EventFormat::parse(&format.system, text.as_bytes()).unwrap();
            assert_eq!((again.fields, again.id, again.name), (format.fields, format.id, format.name));
            assert_eq!(again.print.trim(), format.print.trim());
        }
    }
}
