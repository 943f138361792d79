//! An instant in two parts, as in the kernel's tracer `timerlat`: from the instant to the timer
//! interrupt handler, and from there to the thread that it wakes.
//!
//! The first part is the latency of a non-threaded interrupt handler, the sum is that of a threaded
//! one.

use std::sync::Arc;

use super::timers::{LEAD_NS, timespec};
use super::{Condition, affordable, row};
use crate::Stop;
use crate::clock::monotonic_ns;
use crate::model::Row;
use crate::published;
use crate::recorder::Recorder;
use crate::rt;
use crate::session::{Measured, Session, Step, Unit};
use crate::subject::Subject;
use crate::tracefs::Instance;

/// The event that the timer interrupt records for each expired timer, with its time.
const EVENT: &str = "timer/hrtimer_expire_entry";
const INTERVAL_NS: u64 = 500_000;

pub(super) fn steps(condition: Condition) -> Vec<Step> {
    vec![Step::new(format!("an instant, split, {}", condition.name()), move |session| {
        split(session, condition);
    })]
}

fn split(session: &mut Session<'_>, condition: Condition) {
    let row = |slug: &str, subject: &str| {
        let row = row("instant-split", "An instant, split", Subject::Posix).under(condition.name());
        Row { id: row.id.replace("/posix", slug), subject: subject.into(), ..row }
    };
    let interrupt = row("/interrupt", "to the interrupt").published(published::edges());
    let thread = row("/thread", "from it to a thread");
    let cpu = session.plan.cpu;
    let measured = Instance::create(cpu, &session.clock, &[EVENT]).and_then(|instance| {
        let _load = condition.begin(session);
        let samples = affordable(session.plan, INTERVAL_NS);
        let stop = session.stop;
        instance.switch_on();
        let (wakes, lack) = rt::on_thread(cpu, rt::PRIORITY, |lack| (wakes(samples, stop), lack.clone()));
        instance.switch_off();
        let trace = instance.read().map_err(|error| format!("the tracer could not be read: {error}"))?;
        Ok((parts(&wakes, &expirations(&trace.text)), wakes.len(), lack))
    });
    let (parts, wakes, lack) = match measured {
        Ok(measured) => measured,
        Err(why) => {
            session.add_unmeasured(interrupt, why.as_str());
            return session.add_unmeasured(thread, why);
        }
    };
    let recorders = [(); 2].map(|()| Arc::new(Recorder::new(parts.len())));
    for (to_interrupt, to_thread) in &parts {
        recorders[0].push(*to_interrupt);
        recorders[1].push(*to_thread);
    }
    if parts.len() < wakes {
        session.note(format!(
            "Of {wakes} instants the interrupts of {} were not recorded, and are omitted.",
            wakes - parts.len()
        ));
    }
    for (row, recorder) in [interrupt, thread].into_iter().zip(recorders) {
        session.add(row, &Measured { recorder, lack: lack.clone(), unit: Unit::Nanos });
    }
}

/// Sleeps until one instant after another, and returns each with the time of the return.
fn wakes(samples: usize, stop: &Stop) -> Vec<(u64, u64)> {
    let mut wakes = Vec::with_capacity(samples);
    let mut nominal_ns = monotonic_ns() + LEAD_NS;
    while wakes.len() < samples && !stop.is_requested() {
        let clock = rustix::thread::ClockId::Monotonic;
        while rustix::thread::clock_nanosleep_absolute(clock, &timespec(nominal_ns)).is_err() {}
        let now_ns = monotonic_ns();
        wakes.push((nominal_ns, now_ns));
        // If late by more than an interval, the next instants have no interrupts of their own.
        nominal_ns = (nominal_ns + INTERVAL_NS).max(now_ns + INTERVAL_NS / 2);
    }
    wakes
}

/// Returns the times of interrupts that have woken a sleeping thread, in order.
fn expirations(trace: &str) -> Vec<u64> {
    let wakes = trace.lines().filter(|line| line.contains("function=hrtimer_wakeup"));
    let now = |line: &str| line.split_once("now=")?.1.split_whitespace().next()?.parse().ok();
    wakes.filter_map(now).collect()
}

/// Returns the times from each instant to the first interrupt after it, and from there to the
/// thread.
fn parts(wakes: &[(u64, u64)], expirations: &[u64]) -> Vec<(u64, u64)> {
    let part = |&(nominal, woken): &(u64, u64)| {
        let at = expirations.partition_point(|&interrupt| interrupt < nominal);
        let interrupt = *expirations.get(at).filter(|&&interrupt| interrupt <= woken)?;
        Some((interrupt - nominal, woken - interrupt))
    };
    wakes.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_first_interrupt_after_instant() {
        let trace = "# tracer: nop\n  <idle>-0 [001] d.h. 7: hrtimer_expire_entry: hrtimer=00f function=hrtimer_wakeup now=1012\n\
                     \x20 <idle>-0 [001] d.h. 8: hrtimer_expire_entry: hrtimer=00e function=tick_nohz_handler now=1500\n\
                     \x20 <idle>-0 [001] d.h. 9: hrtimer_expire_entry: hrtimer=00f function=hrtimer_wakeup now=2020\n";
        let expirations = expirations(trace);
        assert_eq!(expirations, [1012, 2020]);
        // The third had no recorded interrupt.
        assert_eq!(parts(&[(1000, 1030), (2000, 2100), (3000, 3100)], &expirations), [(12, 18), (20, 80)]);
        // Woken before the next interrupt, which is therefore not its own.
        assert_eq!(parts(&[(1500, 1600)], &expirations), []);
    }
}
