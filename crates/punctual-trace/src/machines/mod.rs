//! Merges recordings of several machines, by a clock that they share or by messages that they
//! exchanged while they recorded.
//!
//! A message cannot be received before it is sent. So each message from the first machine to
//! another bounds the offset of the other's clock on one side, and each message back bounds it on
//! the other side; [`Clocks`] computes the range that all of them allow. [`exchange`] marks the
//! messages in the recordings of both.
//!
//! [`merge`] writes the file. Numbers that each machine assigns itself are made distinct: see
//! [`THREADS`].

pub mod exchange;

mod clocks;
mod records;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use self::clocks::{ClockError, Clocks};
use self::exchange::Message;
use self::records::{Machine, text};
use crate::format::dat::{Buffer, Content, Group, PROCESS, Pages, RESERVATION};
use crate::format::fields::PageLayout;
use crate::format::page_writer::PageWriter;
use crate::format::{MAX_IN_MEMORY, Store};
use crate::read::clock::counted;
use crate::read::records::Item;
use crate::read::translate::is_read_alike;
use crate::read::{CpuData, Order, ReadError, Trace};
use crate::recorded::Recorded;
use crate::write::{WriteError, dat, formats};

/// Offset of the second machine's thread IDs; the third has twice this offset, and so on. Their
/// CPUs follow those of the preceding machines.
pub const THREADS: u32 = 10_000_000;
/// Offset of device interrupt numbers.
pub const IRQS: u32 = 2_048;
/// Offset of task numbers of Punctual apps.
pub const TASKS: u16 = 1_024;
/// Maximum number of machines, limited by the range of thread IDs.
pub const MAX_MACHINES: usize = 16;

/// Maximum size of a page's own metadata. Longer records than fit next to it are dropped and
/// counted.
const OVERHEAD: usize = 64;
const SECOND: i128 = 1_000_000_000;

/// Relation between the clocks of the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// By the messages that each exchanged with the first.
    Messages,
    /// Clocks that agree to within this many ns, as with PTP.
    Shared(u64),
}

/// Result of a merge.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Merged {
    /// The clocks of the second machine, the third, and so on, relative to that of the first.
    pub clocks: Vec<Clocks>,
    /// Offset in ns added to all times of the first machine's clock, because another machine was
    /// already running before it started.
    pub shift: u64,
    /// Missing parts of the recordings.
    pub damage: Vec<String>,
}

/// Reason why recordings were not merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A recording cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The file cannot be written.
    #[error("{0}")]
    Write(#[source] WriteError),
    /// The clock of a recording cannot be related to that of the first.
    #[error("{file}: {error}")]
    Clocks {
        /// The recording.
        file: Arc<str>,
        /// The reason.
        #[source]
        error: ClockError,
    },
    /// A recording cannot share a file with the others.
    #[error("{file}: {what}")]
    Unsupported {
        /// The recording.
        file: Arc<str>,
        /// The reason, and the remedy.
        what: String,
    },
}

/// Merges these recordings into `file`, on the clock of the first.
///
/// # Errors
/// Returns an error if a recording cannot be read, if their clocks cannot be related, or if the
/// file cannot be written.
pub fn merge(traces: &[Trace], relation: Relation, file: &Path) -> Result<Merged, MergeError> {
    check(traces, relation)?;
    let all_monotonic = traces.iter().all(|trace| trace.clock() == "mono");
    let mut next = 0_u16;
    let mut machines: Vec<Machine> = traces
        .iter()
        .enumerate()
        .map(|(index, trace)| {
            Machine::new(index, trace.formats(), || {
                next = next.saturating_add(1);
                next
            })
        })
        .collect();
    let budget_timer =
        traces.iter().map(|trace| trace.functions.budget_timer).find(|&at| at != 0).unwrap_or(0);
    let (mut cpus, mut damage) = (0, Vec::new());
    let mut seen = Vec::new();
    for (trace, machine) in traces.iter().zip(&mut machines) {
        machine.cpus = cpus;
        machine.is_monotonic = all_monotonic;
        machine.budget_timer = (trace.functions.budget_timer, budget_timer);
        let numbers = trace.buffers().iter().flat_map(|buffer| buffer.cpus()).max();
        cpus = cpus.saturating_add(numbers.map_or(0, |cpu| cpu.saturating_add(1)));
        damage.extend(trace.damage().iter().map(|what| format!("{}: {what}", trace.file)));
        seen.push(Seen::of(trace, machine)?);
    }
    let clocks = clocks(traces, relation, &seen)?;
    let first_of = |index: usize, time: u64| match index {
        0 => i128::from(time),
        index => clocks[index - 1].first(time),
    };
    let earliest =
        seen.iter().enumerate().map(|(index, seen)| first_of(index, seen.span.0)).min().unwrap_or(0);
    let shift = if earliest < 0 { (-earliest).div_euclid(SECOND) * SECOND + SECOND } else { 0 };
    let total = traces.iter().flat_map(|trace| trace.buffers()).flat_map(|buffer| &buffer.cpus);
    // Saturating, since a file may claim any length.
    let in_memory = total.fold(0_u64, |sum, data| sum.saturating_add(data.length)) <= MAX_IN_MEMORY;
    let layout = PageLayout::usual(page_size(traces));
    let mut buffers = Vec::new();
    for (index, (trace, machine)) in traces.iter().zip(&machines).enumerate() {
        let first = |time: u64| u64::try_from(first_of(index, time) + shift).unwrap_or(0);
        buffers.extend(rewritten(trace, machine, &first, (layout, in_memory), &mut damage)?);
    }
    let content = Content {
        long: size_of::<usize>() as u8,
        header_page: header_page(layout).into_bytes(),
        header_event: formats::HEADER_EVENT.into(),
        groups: groups(traces, &machines),
        symbols: symbols(traces, budget_timer).into_bytes(),
        printk: Vec::new(),
        names: names(traces, &machines).into_bytes(),
        clocks: match clock_of(traces) {
            "" => Vec::new(),
            clock => format!("[{clock}]").into_bytes(),
        },
        system: system(traces, &clocks).into_bytes(),
        scale: None,
        declared: Some(declared(traces, &machines)?),
        statistics: Vec::new(),
        page: layout.size,
        buffers,
    };
    dat::copy(&content, None, file).map_err(MergeError::Write)?;
    Ok(Merged { clocks, shift: u64::try_from(shift).unwrap_or(u64::MAX), damage })
}

fn unsupported<T>(trace: &Trace, what: impl Into<String>) -> Result<T, MergeError> {
    Err(MergeError::Unsupported { file: trace.file.clone(), what: what.into() })
}

/// Checks that the recordings can share a file.
fn check(traces: &[Trace], relation: Relation) -> Result<(), MergeError> {
    let Some(first) = traces.first() else { return Ok(()) };
    if traces.len() > MAX_MACHINES {
        return unsupported(
            &traces[MAX_MACHINES],
            format!("{MAX_MACHINES} recordings can be merged at most"),
        );
    }
    if traces.iter().map(|trace| trace.formats().len()).sum::<usize>() >= usize::from(u16::MAX) {
        return unsupported(first, "all recordings together have more kinds of events than a file can");
    }
    let switch =
        |trace: &'_ Trace| trace.formats().iter().find(|format| format.name == "sched_switch").cloned();
    for trace in traces {
        trace.check_clocks(trace.buffers().iter())?;
        if trace.layout.order != Order::NATIVE {
            return unsupported(trace, "it is from a machine with the other byte order");
        }
        // A file contains switches in one form only.
        if let (Some(here), Some(there)) = (switch(trace), switch(first))
            && !is_read_alike(&here, &there)
        {
            return unsupported(
                trace,
                "its kernel has context switches in another form than the first; report it by itself",
            );
        }
        if matches!(relation, Relation::Shared(_)) && trace.clock() != first.clock() {
            return unsupported(
                trace,
                format!(
                    "its clock is {}, and that of the first {}; record both with --clock tai",
                    trace.clock(),
                    first.clock()
                ),
            );
        }
    }
    Ok(())
}

/// Facts about a recording that are needed before it is written.
struct Seen {
    /// First and last time.
    span: (u64, u64),
    messages: Vec<Message>,
}

impl Seen {
    fn of(trace: &Trace, machine: &Machine) -> Result<Self, MergeError> {
        let mut seen = Self { span: (u64::MAX, 0), messages: Vec::new() };
        for buffer in trace.buffers() {
            for data in &buffer.cpus {
                let read = trace.records(buffer, data, &mut |item| {
                    if let Item::Record(time, record) = item {
                        seen.span = (seen.span.0.min(time), seen.span.1.max(time));
                        if let Some((number, sent)) = machine.message(record) {
                            seen.messages.push(Message { number, time, sent });
                        }
                    }
                    Ok::<(), ReadError>(())
                });
                // The damage is reported when the recording is written.
                if let Err(error @ ReadError::Io { .. }) = read {
                    return Err(error.into());
                }
            }
        }
        if seen.span.0 > seen.span.1 {
            return Err(ReadError::Empty { file: trace.file.clone() }.into());
        }
        Ok(seen)
    }
}

fn clocks(traces: &[Trace], relation: Relation, seen: &[Seen]) -> Result<Vec<Clocks>, MergeError> {
    let others = traces.iter().zip(seen).skip(1);
    let clocks = others.map(|(trace, other)| match relation {
        Relation::Shared(uncertainty) => Ok(Clocks::shared(uncertainty)),
        Relation::Messages => Clocks::of(&seen[0].messages, &other.messages, other.span)
            .map_err(|error| MergeError::Clocks { file: trace.file.clone(), error }),
    });
    clocks.collect()
}

/// Returns the buffers of a recording, with its records rewritten.
fn rewritten(
    trace: &Trace,
    machine: &Machine,
    first: &impl Fn(u64) -> u64,
    (layout, in_memory): (PageLayout, bool),
    damage: &mut Vec<String>,
) -> Result<Vec<Buffer>, MergeError> {
    let failed = |error: io::Error| MergeError::Write(WriteError::output(&std::env::temp_dir(), None, error));
    let mut buffers = Vec::new();
    for buffer in trace.buffers() {
        let mut cpus = Vec::new();
        for data in &buffer.cpus {
            let store = Store::new(in_memory).map_err(failed)?;
            let mut pages = PageWriter::new(layout, store);
            let (mut record, mut left_out) = (Vec::new(), 0_u64);
            let read = trace.records(buffer, data, &mut |item| match item {
                Item::Lost(count) => pages.missed(count).map_err(failed),
                Item::Record(_, bytes) if bytes.len() + OVERHEAD > layout.size => {
                    left_out += 1;
                    Ok(())
                }
                Item::Record(time, bytes) => {
                    record.clear();
                    record.extend_from_slice(bytes);
                    // A record without a format would be taken for another machine's event.
                    if !machine.change(&mut record, first) {
                        left_out += 1;
                        return Ok(());
                    }
                    pages.push(first(time).max(pages.last()), &record).map_err(failed)
                }
            });
            match read {
                Ok(()) => {}
                Err(MergeError::Read(error)) if !matches!(error, ReadError::Io { .. }) => {
                    damage.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
            if left_out > 0 {
                let what = "records are left out: nothing describes them, or they are too long";
                damage.push(format!("{}: {left_out} {what}", trace.file));
            }
            let bytes = pages.finish().map_err(failed)?.bytes();
            let length = bytes.length().map_err(failed)?;
            let cpu = machine.cpus + data.cpu;
            let file = data.file.clone();
            let part = CpuData { cpu, file, bytes, start: 0, length, packed: None };
            cpus.push((cpu.into(), Pages::Part(Box::new(part), length)));
        }
        let name = match (machine.index, buffer.name.as_str()) {
            (0, name) => name.to_owned(),
            (index, "") => format!("machine{}", index + 1),
            (index, name) => format!("machine{}-{name}", index + 1),
        };
        buffers.push(Buffer { name, clock: String::new(), cpus });
    }
    Ok(buffers)
}

/// Returns the largest page size of all recordings, so that the contents of every page fit.
fn page_size(traces: &[Trace]) -> usize {
    let sizes = traces
        .iter()
        .flat_map(|trace| trace.buffers().iter().map(|buffer| buffer.page_size.unwrap_or(trace.layout.size)));
    sizes.max().unwrap_or(4096)
}

/// Returns the `header_page` for pages of that layout.
fn header_page(layout: PageLayout) -> String {
    let PageLayout { long, data, size, .. } = layout;
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:{};\tsigned:1;\n",
        size - data
    )
}

fn groups(traces: &[Trace], machines: &[Machine]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (trace, machine) in traces.iter().zip(machines) {
        for format in trace.formats() {
            let Some(id) = machine.event(format.id) else { continue };
            let text = text(format, id).into_bytes();
            match groups.iter_mut().find(|(system, _)| *system == format.system) {
                Some((_, texts)) => texts.push(text),
                None => groups.push((format.system.clone(), vec![text])),
            }
        }
    }
    groups
}

/// Returns the kernel functions that the analysis searches for. Readers assume that each extends to
/// the next one, so an unnamed symbol follows: other functions have different addresses in each
/// kernel.
fn symbols(traces: &[Trace], budget_timer: u64) -> String {
    let schedule = traces.iter().flat_map(|trace| &trace.functions.schedule).map(|&at| (at, "T schedule"));
    let timer = (budget_timer != 0).then_some((budget_timer, "t dl_task_timer"));
    let line = |(at, name): (u64, &str)| format!("{at:016x} {name}\n{:016x} t unknown\n", at.wrapping_add(1));
    schedule.chain(timer).map(line).collect()
}

/// Returns the names of threads.
fn names(traces: &[Trace], machines: &[Machine]) -> String {
    let mut names = String::new();
    for (trace, machine) in traces.iter().zip(machines) {
        for line in String::from_utf8_lossy(&trace.threads).lines() {
            if let Some((thread, name)) = line.trim_start().split_once(' ')
                && let Ok(thread) = thread.parse()
            {
                names += &format!("{} {name}\n", machine.thread(thread));
            }
        }
    }
    names
}

/// Returns the common clock, if there is one: nothing is known of any but the first machine's.
fn clock_of(traces: &[Trace]) -> &str {
    let first = traces.first().map_or("", |trace| trace.clock());
    match traces.iter().all(|trace| trace.clock() == first) {
        // Cycles have been converted to ns, which `trace-cmd` calls by this name.
        true if counted(first).is_some() => "tsc2nsec",
        true => first,
        false => "merged",
    }
}

/// Returns all systems, each with the uncertainty of its times.
fn system(traces: &[Trace], clocks: &[Clocks]) -> String {
    let mut parts = Vec::new();
    for (index, trace) in traces.iter().enumerate() {
        let system = if trace.system().is_empty() { &*trace.file } else { trace.system() };
        parts.push(match index {
            0 => system.to_owned(),
            index => format!("{system} (its times ± {:.1} µs)", clocks[index - 1].uncertainty() as f64 / 1e3),
        });
    }
    parts.join("; ")
}

/// Returns the events that all recordings contain, and the threads of each machine.
fn declared(traces: &[Trace], machines: &[Machine]) -> Result<String, MergeError> {
    let mut recorded: Option<Recorded> = None;
    let mut lines = String::new();
    for (trace, machine) in traces.iter().zip(machines) {
        let own = trace.recorded()?;
        recorded = Some(match recorded {
            None => own,
            Some(all) => all.and(&own, machine.thread(1) - 1),
        });
        for (thread, process) in trace.processes() {
            lines += &format!("{PROCESS}{} {}\n", machine.thread(thread), machine.thread(process));
        }
        for (thread, reserved) in trace.reservations() {
            let (runtime, deadline, period) = (reserved.runtime, reserved.deadline, reserved.period);
            lines += &format!("{RESERVATION}{} {runtime} {deadline} {period}\n", machine.thread(thread));
        }
    }
    Ok(recorded.unwrap_or_default().text() + &lines)
}
