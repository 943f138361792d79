//! Translates LTTng's kernel events into those that ftrace would have recorded: names, fields and
//! records.
//!
//! LTTng records the kernel's tracepoints under its own names, with `tid` for the kernel's `pid`,
//! and with priorities from -100 on, where the kernel's begin at 0.

use std::collections::HashMap;

use super::tsdl::Event;
use super::types::{Integer, Leaf, Type, Value};
use crate::format::fields::{EventFormat, Field, Shape};

/// The kernel's `MAX_RT_PRIO`, which LTTng subtracts from priorities.
const MAX_RT_PRIO: i64 = 100;
/// The offset of an event's own fields, after those common to all.
const HEAD: u16 = 8;
/// The length of a thread name in the kernel.
const NAME: usize = 16;
/// Texts are truncated to this length.
const MAX_TEXT: usize = 255;
/// The maximum number of fields of an event.
const MAX_FIELDS: usize = 64;

/// The meaning of an event beyond its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    /// Shows the thread that runs from now on.
    Switch,
    /// A system call begins; with its number here.
    Call(u16),
    /// The thread's system call returns.
    Return,
    /// Names a thread.
    Name,
}

/// The conversion of an event of the trace to a record.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) says: Meaning,
    positions: Vec<Place>,
    /// A record with nothing but its event ID.
    empty: Vec<u8>,
}

/// The location of a field in the record.
#[derive(Debug)]
struct Place {
    /// Its name in the metadata.
    name: String,
    at: usize,
    put: Put,
}

#[derive(Debug, Clone, Copy)]
enum Put {
    /// Its size in bytes, and a number to add.
    Number(usize, i64),
    /// As long as a thread name.
    Name,
    /// After the record; its location is stored here.
    Located,
}

/// The formats of the records, and the conversion of each event, by stream and event ID.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) formats: Vec<EventFormat>,
    classes: HashMap<(u64, u64), Class>,
    /// The returns from system calls, by call number, for traces with one event for all of them.
    returns: Vec<Option<Class>>,
    calls: HashMap<String, u16>,
    next: u16,
    /// As in `kernel_release`.
    release: (u32, u32),
}

impl Classes {
    /// Creates an empty table for a kernel of that release.
    pub(super) fn new(release: &str) -> Self {
        let mut numbers =
            release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
        let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self { release, next: 1, ..Self::default() }
    }

    pub(super) fn get(&self, stream: u64, id: u64) -> Option<&Class> {
        self.classes.get(&(stream, id))
    }

    /// Returns the event for the return from that system call.
    pub(super) fn return_of(&self, call: u16) -> Option<&Class> {
        self.returns.get(usize::from(call))?.as_ref()
    }

    /// Adds an event; returns whether there was room.
    pub(super) fn add(&mut self, stream: u64, id: u64, event: &Event) -> bool {
        let (system, name) = kernel_name(&event.name);
        let mut says = match (system, name.as_str()) {
            ("sched", "sched_switch") => Meaning::Switch,
            ("lttng", "exit_syscall") => Meaning::Return,
            ("lttng", "lttng_statedump_process_state") => Meaning::Name,
            _ => Meaning::Nothing,
        };
        if let ("syscalls", Some(call)) = (system, name.strip_prefix("sys_enter_")) {
            let number = self.call(call);
            says = Meaning::Call(number);
            // Older versions have one event for all returns.
            let exit = format!("sys_exit_{call}");
            if event.name.starts_with("sys_") || event.name.starts_with("compat_sys_") {
                let ret = ("_ret".to_owned(), Type::Integer(Integer::LONG));
                let fields = [ret];
                if let Some(class) = self.class("syscalls", &exit, &fields, Meaning::Return, Some(number)) {
                    let place = usize::from(number);
                    if self.returns.len() <= place {
                        self.returns.resize_with(place + 1, || None);
                    }
                    self.returns[place] = Some(class);
                }
            }
        }
        let number = match says {
            Meaning::Call(number) => Some(number),
            _ => name.strip_prefix("sys_exit_").filter(|_| system == "syscalls").map(|call| self.call(call)),
        };
        let none = Vec::new();
        let fields = match &event.fields {
            Some(Type::Structure(structure)) => &structure.fields,
            _ => &none,
        };
        let class = self.class(system, &name, fields, says, number);
        class.map(|class| self.classes.insert((stream, id), class)).is_some()
    }

    /// Returns a number for a system call, because LTTng has only names.
    fn call(&mut self, name: &str) -> u16 {
        let next = self.calls.len() as u16;
        *self.calls.entry(name.to_owned()).or_insert(next)
    }

    fn class(
        &mut self,
        system: &str,
        name: &str,
        fields: &[(String, Type)],
        says: Meaning,
        call: Option<u16>,
    ) -> Option<Class> {
        let id = self.next;
        self.next = id.checked_add(1)?;
        let mut positions = Vec::new();
        let plain = |name: &str, offset, size, signed| {
            let name = name.to_owned();
            Field { name, offset, size, signed, shape: Shape::Plain }
        };
        let mut described = vec![plain("common_type", 0, 2, false), plain("common_pid", 4, 4, true)];
        let mut at = HEAD;
        for (field, of) in fields.iter().take(MAX_FIELDS) {
            let (size, signed, shape, put) = match of {
                Type::Integer(integer) => number(integer, 0),
                Type::Enumeration(enumeration) => number(&enumeration.base, 0),
                Type::Text => (4, false, Shape::Located, Put::Located),
                Type::Array(array) => match (&array.0, field.trim_start_matches('_')) {
                    (
                        Type::Integer(Integer { text: true, bits: 8, .. }),
                        "comm" | "prev_comm" | "next_comm",
                    ) => (NAME as u16, false, Shape::Array(NAME as u16), Put::Name),
                    (Type::Integer(Integer { text: true, bits: 8, .. }), _) => {
                        (4, false, Shape::Located, Put::Located)
                    }
                    _ => continue,
                },
                _ => continue,
            };
            at = at.next_multiple_of(size.min(8));
            let name = field_name(system, field);
            let is_priority = system == "sched" && (name.ends_with("prio"));
            let put = match put {
                Put::Number(size, _) if is_priority => Put::Number(size, MAX_RT_PRIO),
                put => put,
            };
            described.push(Field { name, offset: at, size, signed: signed || is_priority, shape });
            positions.push(Place { name: field.clone(), at: at.into(), put });
            at += size;
        }
        let number = call.map(|call| {
            let at = at.next_multiple_of(4);
            described.push(plain("__syscall_nr", at, 4, true));
            (usize::from(at), call)
        });
        let mut empty = vec![0; number.map_or(usize::from(at), |(at, _)| at + 4)];
        empty[..2].copy_from_slice(&id.to_ne_bytes());
        if let Some((at, call)) = number {
            empty[at..at + 4].copy_from_slice(&u32::from(call).to_ne_bytes());
        }
        let print = if says == Meaning::Switch { states(self.release) } else { String::new() };
        let (system, name) = (system.to_owned(), name.to_owned());
        self.formats.push(EventFormat { system, name, id, fields: described, print });
        Some(Class { says, positions, empty })
    }
}

fn number(integer: &Integer, add: i64) -> (u16, bool, Shape, Put) {
    let size = (integer.bits.div_ceil(8) as usize).next_power_of_two();
    (size as u16, integer.signed, Shape::Plain, Put::Number(size, add))
}

impl Class {
    /// Encodes these fields as a record; the thread is filled in later.
    pub(super) fn encode(&self, leaves: &[Leaf<'_, '_>], record: &mut Vec<u8>) {
        record.clear();
        record.extend(&self.empty);
        // Both are in declaration order.
        let mut positions = self.positions.iter().peekable();
        for leaf in leaves {
            let Some(place) = positions.next_if(|place| place.name == leaf.name) else { continue };
            match (place.put, leaf.value) {
                (Put::Number(size, add), Value::Number(number)) => {
                    let bytes = number.wrapping_add_signed(add).to_le_bytes();
                    let into = &mut record[place.at..place.at + size];
                    into.copy_from_slice(&bytes[..size]);
                    if cfg!(target_endian = "big") {
                        into.reverse();
                    }
                }
                (Put::Name, Value::Text(text)) => {
                    let text = &text[..text.len().min(NAME - 1)];
                    record[place.at..place.at + text.len()].copy_from_slice(text);
                }
                (Put::Located, Value::Text(text)) => {
                    let text = &text[..text.len().min(MAX_TEXT)];
                    let (at, length) = (record.len() as u32, text.len() as u32 + 1);
                    record[place.at..place.at + 4].copy_from_slice(&(length << 16 | at).to_ne_bytes());
                    record.extend(text);
                    record.push(0);
                }
                _ => {}
            }
        }
    }
}

/// The maximum length of a record from [`Class::encode`].
pub(super) const MAX_RECORD: usize = HEAD as usize + (MAX_FIELDS + 1) * (8 + MAX_TEXT + 1) + NAME;

/// Returns ftrace's group and name of an LTTng event; the group is `lttng` if ftrace has no such
/// event.
fn kernel_name(name: &str) -> (&'static str, String) {
    let bare = |prefix: &str| name.strip_prefix(prefix).unwrap_or(name);
    match name {
        "sched_switch" | "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_migrate_task"
        | "sched_pi_setprio" => ("sched", name.to_owned()),
        "irq_handler_entry" | "irq_handler_exit" => ("irq", name.to_owned()),
        "softirq_entry" | "softirq_exit" | "irq_softirq_entry" | "irq_softirq_exit" => {
            ("irq", bare("irq_").to_owned())
        }
        "hrtimer_start"
        | "hrtimer_expire_entry"
        | "hrtimer_expire_exit"
        | "timer_hrtimer_start"
        | "timer_hrtimer_expire_entry"
        | "timer_hrtimer_expire_exit" => ("timer", bare("timer_").to_owned()),
        _ => {
            if let Some(vector) = name.strip_prefix("x86_irq_vectors_") {
                return ("irq_vectors", vector.to_owned());
            }
            let starts = ["compat_syscall_entry_", "syscall_entry_", "compat_sys_", "sys_"];
            if let Some(call) = starts.iter().find_map(|start| name.strip_prefix(start)) {
                return ("syscalls", format!("sys_enter_{call}"));
            }
            let ends = ["compat_syscall_exit_", "syscall_exit_"];
            if let Some(call) = ends.iter().find_map(|start| name.strip_prefix(start)) {
                return ("syscalls", format!("sys_exit_{call}"));
            }
            ("lttng", name.to_owned())
        }
    }
}

/// Returns ftrace's name for a field. LTTng prefixes an underscore to avoid TSDL keywords.
fn field_name(system: &str, name: &str) -> String {
    let name = name.strip_prefix('_').unwrap_or(name);
    match (system, name) {
        ("sched", "tid") => "pid".to_owned(),
        ("sched", "prev_tid") => "prev_pid".to_owned(),
        ("sched", "next_tid") => "next_pid".to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns the meaning of the bits of `prev_state`, as a kernel of that release would print them.
fn states(release: (u32, u32)) -> String {
    let letters = match release {
        // An unknown release counts as a recent one.
        (0, _) => "SDTtXZPI",
        older if older < (3, 9) => "SDTtZXxKW",
        older if older < (4, 2) => "SDTtZXxKWP",
        older if older < (4, 8) => "SDTtZXxKWPN",
        older if older < (4, 14) => "SDTtZXxKWPNn",
        _ => "SDTtXZPI",
    };
    let flags =
        letters.chars().enumerate().map(|(bit, letter)| format!("{{ {:#x}, \"{letter}\" }}", 1 << bit));
    let flags = flags.collect::<Vec<_>>().join(", ");
    format!(r#""prev_state=%s", __print_flags(REC->prev_state, "|", {flags})"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_events_like_kernel() {
        for (name, expected) in [
            ("sched_switch", ("sched", "sched_switch")),
            ("irq_softirq_entry", ("irq", "softirq_entry")),
            ("softirq_exit", ("irq", "softirq_exit")),
            ("timer_hrtimer_expire_entry", ("timer", "hrtimer_expire_entry")),
            ("x86_irq_vectors_local_timer_exit", ("irq_vectors", "local_timer_exit")),
            ("syscall_entry_futex", ("syscalls", "sys_enter_futex")),
            ("compat_syscall_exit_futex", ("syscalls", "sys_exit_futex")),
            ("sys_futex", ("syscalls", "sys_enter_futex")),
            ("exit_syscall", ("lttng", "exit_syscall")),
            ("kmem_kmalloc", ("lttng", "kmem_kmalloc")),
        ] {
            let (system, found) = kernel_name(name);
            assert_eq!((system, found.as_str()), expected);
        }
    }

    /// A preempted thread has the bit after the last of them.
    #[test]
    fn recognizes_kernel_release_states() {
        for (release, bits) in
            [("3.6.11-1-ARCH", 9), ("3.10.31-ltsi", 10), ("4.4.0-21-generic", 11), ("5.10", 8)]
        {
            assert_eq!(states(Classes::new(release).release).matches('{').count(), bits, "{release}");
        }
    }
}
