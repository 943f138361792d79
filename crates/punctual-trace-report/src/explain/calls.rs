//! The recorded system calls of a job.

use punctual_report::format::{format_count, format_part};
use punctual_trace::event::{Event, Kind, Tid};
use punctual_trace::jobs::Actor;
use punctual_trace::names::Names;
use punctual_trace::stats::CapturedJob;

use super::NAMED;

/// Identity of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// `futex`.
    Futex,
    /// `sched_yield`.
    Yield,
    /// Any other, by its number.
    Number(u32),
}

/// A system call of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The system call.
    pub called: Called,
    /// Start, on the trace's clock.
    pub start: u64,
    /// Time until it returned, the next call began or the job ended, in ns.
    pub ns: u64,
    /// True if it returned before the job ended.
    pub returned: bool,
}

impl Call {
    /// Returns the name of the system call.
    #[must_use]
    pub fn name(&self, names: &Names) -> String {
        match self.called {
            Called::Futex => "futex".to_owned(),
            Called::Yield => "sched_yield".to_owned(),
            Called::Number(number) => names.of_call(number),
        }
    }
}

/// Returns the system calls of a job, in order, without a call that was in progress at its release.
#[must_use]
pub fn calls(captured: &CapturedJob) -> Vec<Call> {
    let Actor::Thread(thread) = captured.job.actor else { return Vec::new() };
    of_thread(&captured.events, thread, captured.job.end)
}

fn of_thread(events: &[Event], thread: Tid, end: u64) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut now = 0;
    for event in events.iter().filter(|event| event.by == thread) {
        // An event of another CPU may be older than its predecessor.
        now = event.time.max(now);
        let called = match event.kind {
            Kind::SyscallEnter { number } => Called::Number(number),
            Kind::FutexEnter { .. } => Called::Futex,
            Kind::YieldEnter => Called::Yield,
            Kind::SyscallExit { .. } | Kind::FutexExit { .. } | Kind::YieldExit => {
                if let Some(call) = calls.last_mut().filter(|call| !call.returned) {
                    (call.ns, call.returned) = (now - call.start, true);
                }
                continue;
            }
            _ => continue,
        };
        // A recording of system calls may contain both the general events and those specific to the
        // call.
        let again = calls.last().is_some_and(|call| !call.returned && call.start == now);
        if !again {
            // A thread is in one call at a time, even if the exits are not recorded.
            if let Some(call) = calls.last_mut().filter(|call| !call.returned) {
                (call.ns, call.returned) = (now - call.start, true);
            }
            calls.push(Call { called, start: now, ns: end.saturating_sub(now), returned: false });
        }
    }
    calls
}

/// Describes the system calls of a job and their total times, longest first, or returns `None` if
/// none was recorded.
#[must_use]
pub fn system_calls(captured: &CapturedJob, names: &Names) -> Option<String> {
    let mut sums: Vec<(String, u64, u64)> = Vec::new();
    for call in calls(captured) {
        let name = call.name(names);
        match sums.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, count, ns)) => (*count, *ns) = (*count + 1, *ns + call.ns),
            None => sums.push((name, 1, call.ns)),
        }
    }
    sums.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    let (count, ns) = sums.iter().fold((0, 0), |(all, sum), (_, count, ns)| (all + count, sum + ns));
    let mut parts: Vec<_> = sums
        .iter()
        .take(2 * NAMED)
        .map(|(name, count, ns)| format!("{} × {name}, {}", format_count(*count), format_part(*ns)))
        .collect();
    if sums.len() > parts.len() {
        parts.push(format!("{} more", sums.len() - parts.len()));
    }
    let plural = if count == 1 { "" } else { "s" };
    let (count, ns) = (format_count(count), format_part(ns));
    (!parts.is_empty()).then(|| format!("{count} system call{plural} in {ns}: {}.", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_calls_until_return_or_end_of_job() {
        let event = |time, by, kind| Event { time, cpu: 0, by, kind };
        let events = [
            event(5, 7, Kind::SyscallExit { number: 1 }),
            event(10, 7, Kind::SyscallEnter { number: 0 }),
            event(12, 9, Kind::SyscallEnter { number: 3 }),
            event(20, 7, Kind::SyscallExit { number: 0 }),
            event(30, 7, Kind::FutexEnter { word: 1, operation: 0, value: 0 }),
            event(34, 7, Kind::FutexExit { result: 0 }),
            event(40, 7, Kind::SyscallEnter { number: 230 }),
        ];
        let call = |called, start, ns, returned| Call { called, start, ns, returned };
        let (read, sleep) = (Called::Number(0), Called::Number(230));
        let expected =
            [call(read, 10, 10, true), call(Called::Futex, 30, 4, true), call(sleep, 40, 60, false)];
        assert_eq!(of_thread(&events, 7, 100), expected);
    }

    #[test]
    fn ends_call_without_recorded_exit_where_next_begins() {
        let event = |time, number| Event { time, cpu: 0, by: 7, kind: Kind::SyscallEnter { number } };
        let calls = of_thread(&[event(10, 1), event(30, 2), event(60, 3)], 7, 100);
        assert_eq!(calls.iter().map(|call| call.ns).collect::<Vec<_>>(), [20, 30, 40]);
    }

    #[test]
    fn takes_disordered_events_for_simultaneous_ones() {
        let event = |time, kind| Event { time, cpu: 0, by: 7, kind };
        let events =
            [event(20, Kind::SyscallEnter { number: 1 }), event(10, Kind::SyscallExit { number: 1 })];
        assert_eq!(of_thread(&events, 7, 30)[0].ns, 0);
    }
}
