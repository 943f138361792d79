//! A timer handler that determines the next due time while another CPU arms a timer: either the
//! handler sees the timer, or the arming thread sees that the handler's CPU would be too late.
//!
//! Bound: three preemptions; the merge gate explores two. A timer is late if it is armed after the
//! handler has scanned its level and before the handler's next due time is visible. One preemption
//! starts the handler, and a second stops it after the scan. The third stops the arming thread
//! between its change of the timer and its check of the due time.

use crate::support::{Arena, check, level, slots, worker};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use punctual_core::{CurrentWorker, Instant, Level, Partition, Port, ReadyLevels, Slots, Stamp, Worker};

type Timers = Slots<(), 1, 1>;

/// The CPU of the partition, which records wakes.
struct Cpu(AtomicBool);

impl Port for Cpu {
    type Word = ReadyLevels;

    fn now(&self) -> Instant {
        at(0)
    }

    fn wake(&self, _: &Worker) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
        false
    }

    fn wait_while(&self, _: &AtomicU32, _: u32) {
        panic!("the thread that runs jobs never waits");
    }

    fn wake_all(&self, _: &AtomicU32) {}

    fn boost(&self, _: &AtomicU32) -> bool {
        false
    }

    fn unboost(&self, _: &AtomicU32) {}
}

type Part = Partition<Cpu>;

/// A partition whose first worker runs every level.
fn partition(arena: &Arena, levels: &[&'static Level], workers: &[&'static Worker]) -> &'static Part {
    let levels: &'static Vec<&'static Level> = arena.put(levels.to_vec());
    let workers: &'static Vec<&'static Worker> = arena.put(workers.to_vec());
    // SAFETY: nothing else uses the worker, and no other thread runs jobs.
    unsafe { CurrentWorker::new(workers[0]).set_alone() };
    // SAFETY: there is one partition, with these workers and levels.
    arena.put(unsafe { Partition::new(Cpu(AtomicBool::new(false)), levels, workers) })
}

/// Runs the timer handler; returns the next due time.
fn tick(p: &'static Part, me: &'static Worker, now: u64) -> Option<Instant> {
    // SAFETY: nothing else acts as the one thread of the partition.
    let (next, expired) = unsafe { p.tick(CurrentWorker::new(me), at(now)) };
    if let Some(expired) = expired {
        expired.run();
    }
    next
}

fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

/// A level whose jobs are counted.
fn counting(
    arena: &Arena,
    number: u8,
    worker: &'static Worker,
    nodes: usize,
) -> (&'static Level, &'static AtomicU32) {
    let runs: &'static AtomicU32 = arena.put(AtomicU32::new(0));
    (level(arena, number, worker, nodes, |_, _| _ = runs.fetch_add(1, Ordering::Relaxed)), runs)
}

/// At time 0 a handler scans two levels, one of which is due at 9. Concurrently a timer of the
/// other is armed for 5, or moved there from `first`, and has to run then. With `polls`, the
/// handler scans that level although no timer is armed there.
fn notified_level(first: Option<u64>, polls: bool) {
    check(3, move |arena| {
        let thread = worker(arena, 0, 1, true);
        let workers = [1, 2].map(|base| worker(arena, base, base.into(), true));
        let [(low, runs), (high, _)] =
            [1, 2].map(|number| counting(arena, number, workers[number as usize - 1], 1));
        let p = partition(arena, &[low, high], &[thread, workers[0], workers[1]]);
        let (earlier, other): (&Timers, &Timers) = (slots(arena, low), slots(arena, high));
        let arm = move |timer: &Timers, level, time| {
            let armed = timer.arm((), at(time)).unwrap();
            p.armed(level, at(time));
            armed
        };
        arm(other, high, 9);
        let armed = first.map(|first| arm(earlier, low, first));
        if polls {
            p.lay_grids_here(at(0));
        }
        let handler = loom::thread::spawn(move || tick(p, thread, 0));
        match armed {
            Some(armed) => {
                assert!(earlier.reschedule(armed, at(5)), "the timer is not due");
                p.armed(low, at(5));
            }
            None => _ = arm(earlier, low, 5),
        }
        let next = handler.join().unwrap().expect("timers are armed");
        assert!(
            next <= at(5) || p.port().0.load(Ordering::Relaxed),
            "the timer of {next} is set, and no wake was sent for 5"
        );
        tick(p, thread, 5);
        assert_eq!(runs.load(Ordering::Relaxed), 1, "the job armed for 5 has run");
    });
}

#[test]
fn handler_sees_first_timer() {
    notified_level(None, false);
}

#[test]
fn handler_sees_first_timer_of_checked_level() {
    notified_level(None, true);
}

#[test]
fn handler_sees_earlier_timer() {
    notified_level(Some(20), false);
}

/// A handler takes a due job of a level to run it. Concurrently another CPU arms a timer of that
/// level, for `second`.
fn beside(second: u64) {
    check(3, move |arena| {
        let thread = worker(arena, 0, 1, true);
        let own = worker(arena, 1, 1, true);
        let (level, runs) = counting(arena, 1, own, 2);
        let p = partition(arena, &[level], &[thread, own]);
        let timers: &Slots<(), 2, 1> = slots(arena, level);
        timers.arm((), at(3)).unwrap();
        p.armed(level, at(3));
        let handler = loom::thread::spawn(move || tick(p, thread, 3));
        timers.arm((), at(second)).unwrap();
        p.armed(level, at(second));
        let next = handler.join().unwrap();
        assert!(
            runs.load(Ordering::Relaxed) == 2
                || next.is_some_and(|next| next <= at(second))
                || p.port().0.load(Ordering::Relaxed),
            "the timer of {next:?} is set, and no wake was sent for {second}"
        );
        tick(p, thread, second);
        assert_eq!(runs.load(Ordering::Relaxed), 2, "each has run at its time");
    });
}

#[test]
fn handler_sees_timer_next_to_running_one() {
    beside(5);
}

/// Two jobs of a level that are due together.
#[test]
fn handler_runs_further_due_jobs() {
    check(3, move |arena| {
        let thread = worker(arena, 0, 1, true);
        let own = worker(arena, 1, 1, true);
        let (level, runs) = counting(arena, 1, own, 2);
        let p = partition(arena, &[level], &[thread, own]);
        let timers: &Slots<(), 2, 1> = slots(arena, level);
        for time in [2, 3] {
            timers.arm((), at(time)).unwrap();
            p.armed(level, at(time));
        }
        tick(p, thread, 3);
        assert_eq!(runs.load(Ordering::Relaxed), 2, "both were due");
    });
}
