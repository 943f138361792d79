//! Encodes [events](crate::event) as records: the inverse of [`translate`](crate::read::translate).
//!
//! ```
//! use punctual_trace::event::{Event, Kind};
//! use punctual_trace::read::Order;
//! use punctual_trace::write::{encode::Encoder, formats};
//!
//! let encoder = Encoder::new(Order::NATIVE, &formats::all());
//! let event = Event { time: 1, cpu: 0, by: 17, kind: Kind::SoftirqEntry { softirq: 1 } };
//! let mut record = Vec::new();
//! encoder.encode(&event, |_| None, &mut record)?;
//! assert_eq!(record.len(), 12);
//! # Ok::<(), punctual_trace::write::WriteError>(())
//! ```

use punctual_core::trace_marker::{self, Mark, OfflineJob};

use super::WriteError;
use crate::event::{Event, Kind, Noise, Section, SwitchOut, Tid};
use crate::format::Order;
use crate::format::exchange;
use crate::format::fields::{EventFormat, Field, Shape};
use crate::format::page_writer::bytes;
use crate::format::recipe::{Code, recipe};

/// Address used for [`Kind::ScheduleEnter`]; `kallsyms` of a synthetic trace contains it.
pub(super) const SCHEDULE: u64 = 0xffff_ffff_8100_0000;

/// Address of the function used for [`Kind::BudgetTimerStart`].
pub(super) const BUDGET_TIMER: u64 = 0xffff_ffff_8110_0000;

struct Layout {
    code: Code,
    /// A record that contains only its event number.
    empty: Vec<u8>,
    by: Field,
    fields: Vec<Field>,
    /// The name fields, each with the index of the value that identifies the thread.
    names: Vec<(Field, usize)>,
    located: Vec<Field>,
}

/// Encodes events as records.
pub struct Encoder {
    order: Order,
    shapes: Vec<Layout>,
}

impl Encoder {
    /// Creates an encoder with these formats.
    pub fn new(order: Order, formats: &[EventFormat]) -> Self {
        let mut shapes: Vec<Layout> = Vec::new();
        for format in formats {
            let Some((code, names)) = recipe(&format.system, &format.name) else { continue };
            let fields: Option<Vec<_>> = names
                .iter()
                .map(|names| names.split('|').find_map(|name| format.field(name)).cloned())
                .collect();
            let (Some(fields), Some(id), Some(by)) =
                (fields, format.field("common_type"), format.field("common_pid"))
            else {
                continue;
            };
            if shapes.iter().any(|shape| shape.code == code) {
                continue;
            }
            let end = format.fields.iter().map(|field| field.offset + field.size).max().unwrap_or(0);
            let mut empty = vec![0; usize::from(end)];
            put(order, &mut empty, id, format.id.into());
            let comm = |name: &str, value| {
                let field = format.field(name).filter(|field| field.shape == Shape::Array(16));
                field.map(|field| (field.clone(), value))
            };
            let names = [comm("comm", 0), comm("prev_comm", 0), comm("next_comm", 3)];
            let located = format.fields.iter().filter(|field| field.shape == Shape::Located).cloned();
            shapes.push(Layout {
                code,
                empty,
                by: by.clone(),
                fields,
                names: names.into_iter().flatten().collect(),
                located: located.collect(),
            });
        }
        Self { order, shapes }
    }

    /// Encodes an event; `name` returns the names of threads.
    ///
    /// [`Kind::Lost`] has no record: pages report it. Neither has [`Kind::Named`]: other records
    /// contain names.
    pub fn encode<'a>(
        &self,
        event: &Event,
        name: impl Fn(Tid) -> Option<&'a str>,
        record: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let (code, kind, values) = values(&event.kind);
        let shape = self.shapes.iter().find(|shape| shape.code == code && code != Code::Unknown);
        let shape = shape.ok_or(WriteError::NoFormat(kind))?;
        record.clear();
        record.extend(&shape.empty);
        put(self.order, record, &shape.by, event.by.into());
        for (field, &value) in shape.fields.iter().zip(&values) {
            put(self.order, record, field, value);
        }
        for (field, value) in &shape.names {
            if let Some(name) = name(values[*value] as Tid) {
                let name = &name.as_bytes()[..name.len().min(15)];
                let at = usize::from(field.offset);
                record[at..at + name.len()].copy_from_slice(name);
            }
        }
        for field in &shape.located {
            let name = name(values[0] as Tid).filter(|_| field.name == "comm").unwrap_or("?");
            let at = record.len() as u64;
            record.extend(name.as_bytes());
            record.push(0);
            put(self.order, record, field, at | (name.len() as u64 + 1) << 16);
        }
        if code == Code::Marker {
            marker_content(self.order, &event.kind, record);
        }
        Ok(())
    }
}

impl Encoder {
    /// Encodes the mark of a [message](crate::machines::exchange::Message) between machines.
    pub fn encode_message(
        &self,
        by: Tid,
        number: u64,
        sent: bool,
        record: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let shape = self.shapes.iter().find(|shape| shape.code == Code::Marker);
        let shape = shape.ok_or(WriteError::NoFormat("message"))?;
        record.clear();
        record.extend(&shape.empty);
        put(self.order, record, &shape.by, by.into());
        record.truncate(shape.fields[0].offset.into());
        record.extend(exchange::mark(number, sent));
        Ok(())
    }
}

fn put(order: Order, record: &mut [u8], field: &Field, value: u64) {
    let (at, size) = (usize::from(field.offset), usize::from(field.size));
    if let Some(place) = record.get_mut(at..at + size)
        && (1..=8).contains(&size)
    {
        place.copy_from_slice(&bytes(order, value, size)[..size]);
    }
}

/// Appends the part of a mark after the field that identifies it.
fn marker_content(order: Order, kind: &Kind, record: &mut Vec<u8>) {
    let mark = match *kind {
        Kind::JobStart { task, released } => Mark::Start { task, released },
        Kind::JobEnd { task } => Mark::End { task },
        Kind::OfflineJob { task, cpu, started, jitter, window, preempted } => {
            let released = started.saturating_sub(jitter.into());
            let job = OfflineJob {
                released,
                started,
                ended: started.saturating_add(window.into()),
                preempted: preempted.into(),
            };
            Mark::OfflineJob { task, cpu: cpu.into(), job }
        }
        Kind::OfflineLost { cpu, count } => Mark::Lost { cpu: cpu.into(), count: count.into() },
        _ => return,
    };
    record.extend(&mark.write(order == Order::Big)[4..]);
}

/// Returns the event code, its name, and the field values in the order of the recipe.
fn values(kind: &Kind) -> (Code, &'static str, [u64; 5]) {
    let signed = |value: i32| value as i64 as u64;
    let (code, name, some): (_, _, &[u64]) = match *kind {
        Kind::Waking { task, cpu } => {
            (Code::Waking, "Waking", &[task.id.into(), signed(task.priority), cpu.into()])
        }
        Kind::Wakeup { task, cpu, new } => (
            if new { Code::WakeupNew } else { Code::Wakeup },
            "Wakeup",
            &[task.id.into(), signed(task.priority), cpu.into()],
        ),
        Kind::Switch { from, reason, to } => {
            let state = match reason {
                SwitchOut::Runnable => 0x100,
                SwitchOut::Sleeping => 1,
                SwitchOut::Uninterruptible => 2,
                SwitchOut::Gone => 0x20,
            };
            let (from_priority, to_priority) = (signed(from.priority), signed(to.priority));
            (Code::Switch, "Switch", &[from.id.into(), from_priority, state, to.id.into(), to_priority])
        }
        Kind::Migrate { task, from, to } => {
            (Code::Migrate, "Migrate", &[task.id.into(), signed(task.priority), from.into(), to.into()])
        }
        Kind::Inherit { task, old, new } => {
            (Code::Inherit, "Inherit", &[task.into(), signed(old), signed(new)])
        }
        Kind::IrqEntry { irq } => (Code::IrqEntry, "IrqEntry", &[irq.into()]),
        Kind::IrqExit { irq } => (Code::IrqExit, "IrqExit", &[irq.into()]),
        Kind::VectorEntry { vector } => (Code::VectorEntry, "VectorEntry", &[vector.into()]),
        Kind::VectorExit { vector } => (Code::VectorExit, "VectorExit", &[vector.into()]),
        Kind::SoftirqEntry { softirq } => (Code::SoftirqEntry, "SoftirqEntry", &[softirq.into()]),
        Kind::SoftirqExit { softirq } => (Code::SoftirqExit, "SoftirqExit", &[softirq.into()]),
        Kind::TimerStart { timer, expires } => (Code::TimerStart, "TimerStart", &[timer, expires]),
        Kind::BudgetTimerStart { timer, expires } => {
            (Code::TimerStart, "BudgetTimerStart", &[timer, expires, BUDGET_TIMER])
        }
        Kind::TimerExpire { timer, now } => (Code::TimerExpire, "TimerExpire", &[timer, now]),
        Kind::TimerExpired { timer } => (Code::TimerExpired, "TimerExpired", &[timer]),
        Kind::ContentionBegin { lock, flags } => {
            (Code::ContentionBegin, "ContentionBegin", &[lock, flags.into()])
        }
        Kind::ContentionEnd { lock } => (Code::ContentionEnd, "ContentionEnd", &[lock]),
        Kind::FutexEnter { word, operation, value } => {
            (Code::FutexEnter, "FutexEnter", &[word, operation.into(), value.into()])
        }
        Kind::FutexExit { result } => (Code::FutexExit, "FutexExit", &[result as u64]),
        Kind::YieldEnter => (Code::YieldEnter, "YieldEnter", &[]),
        Kind::YieldExit => (Code::YieldExit, "YieldExit", &[]),
        Kind::SyscallEnter { number } => (Code::SyscallEnter, "SyscallEnter", &[number.into()]),
        Kind::SyscallExit { number } => (Code::SyscallExit, "SyscallExit", &[number.into()]),
        Kind::ScheduleEnter => (Code::GraphEntry, "ScheduleEnter", &[SCHEDULE]),
        Kind::ScheduleExit => (Code::GraphExit, "ScheduleExit", &[SCHEDULE]),
        Kind::JobStart { .. } => (Code::Marker, "JobStart", &[trace_marker::START.into()]),
        Kind::JobEnd { .. } => (Code::Marker, "JobEnd", &[trace_marker::END.into()]),
        Kind::OfflineJob { .. } => (Code::Marker, "OfflineJob", &[trace_marker::OFFLINE_JOB.into()]),
        Kind::OfflineLost { .. } => (Code::Marker, "OfflineLost", &[trace_marker::LOST.into()]),
        Kind::Disable { section: Section::Interrupts, caller } => {
            (Code::IrqOff, "Disable", &[signed(caller)])
        }
        Kind::Disable { section: Section::Preemption, caller } => {
            (Code::PreemptOff, "Disable", &[signed(caller)])
        }
        Kind::Enable { section: Section::Interrupts, caller } => (Code::IrqOn, "Enable", &[signed(caller)]),
        Kind::Enable { section: Section::Preemption, caller } => {
            (Code::PreemptOn, "Enable", &[signed(caller)])
        }
        Kind::Noise { source, ns } => match source {
            Noise::Nmi => (Code::NoiseNmi, "Noise", &[ns]),
            Noise::Irq(vector) => (Code::NoiseIrq, "Noise", &[ns, signed(vector)]),
            Noise::Softirq(vector) => (Code::NoiseSoftirq, "Noise", &[ns, signed(vector)]),
            Noise::Thread(tid) => (Code::NoiseThread, "Noise", &[ns, tid.into()]),
        },
        Kind::Named { .. } => (Code::Unknown, "Named", &[]),
        Kind::Lost { .. } => (Code::Unknown, "Lost", &[]),
        Kind::Other { .. } => (Code::Unknown, "Other", &[]),
    };
    let mut values = [0; 5];
    values[..some.len()].copy_from_slice(some);
    (code, name, values)
}
