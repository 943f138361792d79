//! Attributes gaps to kernel activities, from the text of the kernel's tracer.
//!
//! Entries and exits of interrupts nest, and other tasks run between two switches. The time between
//! two events belongs to the activity that was entered last and not yet left. Unattributed time is
//! the kernel entry and exit if it is short and there are events; otherwise it was not caused by
//! the kernel, but by the host of a virtual machine or the hardware.

use std::collections::HashMap;

/// The cause of time that no kernel event explains.
pub(super) const HOST: &str = "host or hardware (no kernel event)";

/// The prefix of task names.
const TASK: &str = "task ";

/// The CPU idles although the measured thread, which never sleeps, is runnable.
const THROTTLED: &str = "idle CPU: the thread is throttled";

/// A kernel event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    at: u64,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// The start of an activity with this name.
    Enter(String),
    /// The end of the innermost activity.
    Leave,
    /// The measured thread runs again, after any activity.
    Resume,
}

/// The share of one cause in the gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) name: String,
    /// The number of gaps in which this was the main cause.
    pub(super) gaps: u64,
    /// The total time in all gaps.
    pub(super) total: u64,
    /// The time in the gap with the most of it.
    pub(super) max: u64,
}

/// Parses the events of a trace, in order; `thread` is the measured thread.
pub(super) fn parse(text: &str, thread: i32) -> Vec<Event> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| event(line, thread)).collect()
}

/// Parses one line: `task-pid [cpu] flags time: name: details`.
fn event(line: &str, thread: i32) -> Option<Event> {
    // A task name may contain any characters except a number in brackets between spaces.
    let (_, behind) = line.split_once("] ")?;
    let mut words = behind.split_whitespace();
    let time = words.find(|word| word.ends_with(':'))?.trim_end_matches(':');
    let name = words.next()?.trim_end_matches(':');
    let details = behind.split_once(&format!("{name}:")).map_or("", |(_, details)| details.trim());
    Some(Event { at: units(time)?, kind: kind(name, details, thread)? })
}

/// Parses a time as printed by the tracer: a count, or seconds with a fraction, which become
/// nanoseconds.
fn units(time: &str) -> Option<u64> {
    match time.split_once('.') {
        None => time.parse().ok(),
        Some((seconds, fraction)) => {
            let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
            let fraction = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - digits);
            Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction)
        }
    }
}

fn kind(name: &str, details: &str, thread: i32) -> Option<Kind> {
    let field = |name: &str| {
        let (_, value) = details.split_once(&format!("{name}="))?;
        Some(value.split([' ', ']']).next().unwrap_or(value))
    };
    Some(match name {
        "sched_switch" => {
            let to = field("next_pid")?;
            if to == thread.to_string() {
                return Some(Kind::Resume);
            }
            if to == "0" {
                return Some(Kind::Enter(THROTTLED.into()));
            }
            // A name may contain spaces: it extends to the next field.
            let comm = details.split_once("next_comm=").map_or("?", |(_, rest)| rest);
            let comm = comm.split(" next_pid=").next().unwrap_or(comm);
            Kind::Enter(format!("{TASK}{}", without_number(comm)))
        }
        "irq_handler_entry" => Kind::Enter(format!("IRQ {}", field("name").unwrap_or("?"))),
        "softirq_entry" => Kind::Enter(format!("softirq {}", field("action").unwrap_or("?"))),
        "ipi_entry" => Kind::Enter("IPI".into()),
        "local_timer_entry" => Kind::Enter("timer tick".into()),
        "irq_handler_exit" | "softirq_exit" | "ipi_exit" => Kind::Leave,
        _ => match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
            (Some(vector), _) => Kind::Enter(format!("IPI {}", vector.replace('_', " "))),
            (_, Some(_)) => Kind::Leave,
            _ => return None,
        },
    })
}

/// Worker threads are numerous; the part before the number identifies the workqueue.
fn without_number(comm: &str) -> &str {
    comm.split('/').next().unwrap_or(comm)
}

/// Matches ordered `gaps` with ordered `events`. Up to `way` of unexplained time in a gap with
/// events counts as kernel entry and exit.
pub(super) fn attribute(events: &[Event], gaps: &[(u64, u64)], way: u64) -> Vec<Share> {
    let mut shares: HashMap<String, Share> = HashMap::new();
    let mut next = 0;
    for &(from, to) in gaps {
        next += events[next..].partition_point(|event| event.at < from);
        let until = next + events[next..].partition_point(|event| event.at <= to);
        let times = of_one_gap(&events[next..until], from, to, way);
        let most = times.iter().max_by_key(|(_, time)| **time).map(|(name, _)| name.clone());
        for (name, time) in times {
            let share = shares.entry(name.clone()).or_insert(Share { name, gaps: 0, total: 0, max: 0 });
            share.gaps += u64::from(most.as_ref() == Some(&share.name));
            share.total += time;
            share.max = share.max.max(time);
        }
        next = until;
    }
    let mut shares: Vec<Share> = shares.into_values().collect();
    longest_first(&mut shares);
    gather_tasks(shares)
}

fn longest_first(shares: &mut [Share]) {
    shares.sort_by(|a, b| b.max.cmp(&a.max).then_with(|| a.name.cmp(&b.name)));
}

/// The number of tasks shown by name; a busy machine has hundreds.
const NAMED_TASKS: usize = 5;

/// Keeps the first tasks and merges the others into one.
fn gather_tasks(shares: Vec<Share>) -> Vec<Share> {
    let (tasks, mut others): (Vec<_>, Vec<_>) =
        shares.into_iter().partition(|share| share.name.starts_with(TASK));
    let mut tasks = tasks.into_iter();
    others.extend(tasks.by_ref().take(NAMED_TASKS));
    let gathered =
        tasks.fold((0, Share { name: String::new(), gaps: 0, total: 0, max: 0 }), |(count, all), one| {
            let (gaps, total, max) = (all.gaps + one.gaps, all.total + one.total, all.max.max(one.max));
            (count + 1, Share { name: format!("other tasks ({})", count + 1), gaps, total, max })
        });
    if let (1.., gathered) = gathered {
        others.push(gathered);
    }
    longest_first(&mut others);
    others
}

/// Returns the time of each cause in one gap.
fn of_one_gap(events: &[Event], from: u64, to: u64, way: u64) -> HashMap<String, u64> {
    let mut times: HashMap<String, u64> = HashMap::new();
    let mut entered: Vec<&str> = Vec::new();
    let (mut last, mut unexplained) = (from, 0);
    let mut first = None;
    let mut pass = |entered: &[&str], time: u64| match entered.last() {
        Some(name) => *times.entry((*name).to_owned()).or_default() += time,
        None => unexplained += time,
    };
    for event in events {
        pass(&entered, event.at - last);
        last = event.at;
        match &event.kind {
            Kind::Enter(name) => {
                first = first.or(Some(name.as_str()));
                // A switch from one task to another ends the first.
                if name.starts_with(TASK) || name == THROTTLED {
                    entered.clear();
                }
                entered.push(name);
            }
            Kind::Leave => drop(entered.pop()),
            Kind::Resume => entered.clear(),
        }
    }
    pass(&entered, to - last);
    match first {
        Some(first) if unexplained <= way => *times.entry(first.to_owned()).or_default() += unexplained,
        _ => *times.entry(HOST.into()).or_default() += unexplained,
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
       punctual-77      [001] d.h1. 1010: local_timer_entry: vector=236
       punctual-77      [001] d.h1. 1200: local_timer_exit: vector=236
       punctual-77      [001] ..s1. 1210: softirq_entry: vec=1 [action=TIMER]
       punctual-77      [001] ..s1. 1290: softirq_exit: vec=1 [action=TIMER]
       punctual-77      [001] d..2. 2010: sched_switch: prev_comm=punctual prev_pid=77 prev_prio=120 prev_state=R ==> next_comm=a b/1:2 next_pid=9 next_prio=120
  a b/1:2-9             [001] d..2. 2900: sched_switch: prev_comm=a b/1:2 prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=punctual next_pid=77 next_prio=120
       punctual-77      [001] d.h1. 4100: irq_handler_entry: irq=5 name=virtio0
       punctual-77      [001] d.h1. 4900: irq_handler_exit: irq=5 ret=handled
       punctual-77      [001] d.h1. 9100: reschedule_entry: vector=253
       punctual-77      [001] d.h1. 9200: reschedule_exit: vector=253
";

    fn share<'a>(shares: &'a [Share], name: &str) -> &'a Share {
        shares.iter().find(|share| share.name == name).unwrap_or_else(|| panic!("no {name} in {shares:?}"))
    }

    #[test]
    fn lists_causes_of_each_gap() {
        let events = parse(TRACE, 77);
        assert_eq!(events.len(), 10);
        let gaps = [(1000, 1300), (2000, 3000), (3300, 3600), (4000, 5000), (9000, 19_000)];
        let shares = attribute(&events, &gaps, 100);
        // 190 in the tick, and entry and exit: 10 before, 10 between, 10 after.
        assert_eq!((share(&shares, "timer tick").total, share(&shares, "timer tick").gaps), (220, 1));
        assert_eq!(share(&shares, "softirq TIMER").total, 80);
        // 890 of it, and 110 of unexplained time, which is too long for entry and exit.
        assert_eq!(share(&shares, "task a b").total, 890);
        assert_eq!(share(&shares, "IRQ virtio0").total, 800);
        assert_eq!(share(&shares, "IPI reschedule").max, 100);
        // 110 next to the task, one gap without any event, 200 next to the IRQ, and 9900 next to an
        // IPI.
        let host = share(&shares, HOST);
        assert_eq!((host.total, host.max, host.gaps), (110 + 300 + 200 + 9900, 9900, 2));
        assert_eq!(shares[0].name, HOST);
        let all: u64 = shares.iter().map(|share| share.total).sum();
        assert_eq!(all, gaps.iter().map(|(from, to)| to - from).sum::<u64>());
    }

    #[test]
    fn names_longest_of_many_tasks() {
        let share =
            |number: u64| Share { name: format!("task {number}"), gaps: 1, total: number, max: number };
        let shares =
            gather_tasks((0..8).rev().map(share).chain([Share { name: HOST.into(), ..share(9) }]).collect());
        let names: Vec<&str> = shares.iter().map(|share| share.name.as_str()).collect();
        assert_eq!(names, [HOST, "task 7", "task 6", "task 5", "task 4", "task 3", "other tasks (3)"]);
        assert_eq!((shares[6].gaps, shares[6].total, shares[6].max), (3, 3, 2));
    }

    #[test]
    fn converts_seconds_to_nanoseconds() {
        assert_eq!(units("12.000345"), Some(12_000_345_000));
        assert_eq!(units("99"), Some(99));
        assert_eq!(units("x"), None);
    }

    #[test]
    fn skips_invalid_lines() {
        assert!(parse("CPU:1 [LOST 5 EVENTS]\n\n???\n[001] ] :", 1).is_empty());
        assert!(attribute(&[], &[], 1).is_empty());
    }
}
