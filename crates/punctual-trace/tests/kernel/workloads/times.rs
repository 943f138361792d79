//! Preemption by a known thread for a known time, and missed deadlines.

use std::collections::BTreeSet;
use std::sync::Arc;

use punctual_trace::event::Tid;
use punctual_trace::jobs::{Actor, Config, JobKind, ReleasedBy, Select};
use punctual_trace::stats::{Key, Watch};

use crate::workloads::{Bell, MS, Measured, ROUNDS, me, now, perform, sleep_until, spin_until, thread};

/// Run time of the higher thread, inside a job of the lower one of this length.
const DISPLACES: u64 = 2 * MS;
const LOWER: u64 = 5 * MS;

struct Preemption {
    lower: Tid,
    higher: Tid,
    /// For each round: the longest time in which the lower thread could not read the clock.
    gaps: Vec<(u64, u64)>,
    /// The higher one's release, and its first and last reading of the clock.
    runs: Vec<(u64, u64, u64)>,
}

fn preemption() -> (Vec<Tid>, Preemption) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let goes = Arc::new(Bell::new());
    let higher = thread("higher", 30, {
        let goes = Arc::clone(&goes);
        move || {
            let runs = (0..ROUNDS).map(|_| {
                goes.wait();
                let due = now() + MS;
                sender.send(due).unwrap();
                sleep_until(due);
                let start = now();
                spin_until(start + DISPLACES);
                (due, start, now())
            });
            (me(), runs.collect())
        }
    });
    let lower = thread("lower", 20, move || {
        let gaps = (0..ROUNDS).map(|_| {
            sleep_until(now() + 5 * MS);
            goes.ring();
            let (start, mut last, mut longest) = (now(), now(), (0, 0));
            while last < start + LOWER {
                let next = now();
                if next - last > longest.1 - longest.0 {
                    longest = (last, next);
                }
                last = next;
            }
            receiver.recv().unwrap();
            longest
        });
        (me(), gaps.collect())
    });
    let ((higher, runs), (lower, gaps)) = (higher.join().unwrap(), lower.join().unwrap());
    (vec![lower, higher], Preemption { lower, higher, gaps, runs })
}

#[test]
fn names_preemptor_and_counts_its_time_as_interference() {
    perform("preemption", preemption, |played, truth| {
        let mut measured = Vec::new();
        for (&(from, to), &(due, start, end)) in truth.gaps.iter().zip(&truth.runs) {
            if start < from || to < end {
                // The host took the CPU for even longer, and that was the longest gap.
                continue;
            }
            let (Some(lower), Some(higher)) = (played.job(truth.lower, to), played.job(truth.higher, end))
            else {
                continue;
            };
            let by = Actor::Thread(truth.higher);
            let cause = lower.interference_causes.iter().find(|cause| cause.actor == by);
            let cause = cause.expect("the higher thread is a cause");
            measured.push(Measured { what: "I by the higher thread", trace: cause.ns, truth: to - from });
            assert_eq!(higher.released_by, ReleasedBy::Timer);
            measured.push(Measured::exact("J of the higher thread", higher.jitter, start - due));
            measured.push(Measured::exact("W of the higher thread", higher.window, end - start));
        }
        measured
    });
}

/// Period of a thread, every fourth of whose jobs is too long for its deadline.
const PERIOD: u64 = 5 * MS;
const DEADLINE: u64 = 2 * MS;
const SHORT: u64 = MS / 4;
const LONG: u64 = 3 * MS;

struct Periodic {
    thread: Tid,
    /// Release and end of each job.
    jobs: Vec<(u64, u64)>,
}

fn periodic() -> (Vec<Tid>, Periodic) {
    let handle = thread("periodic", 20, || {
        let first = now() + PERIOD;
        let jobs = (0..ROUNDS as u64).map(|round| {
            let release = first + round * PERIOD;
            sleep_until(release);
            spin_until(now() + if round % 4 == 3 { LONG } else { SHORT });
            (release, now())
        });
        let jobs = jobs.collect();
        // The last one ends like the others.
        sleep_until(now() + MS);
        (me(), jobs)
    });
    let (thread, jobs) = handle.join().unwrap();
    (vec![thread], Periodic { thread, jobs })
}

#[test]
fn counts_deadline_misses_seen_by_program() {
    perform("deadlines", periodic, |played, truth| {
        let select = Select { tids: vec![truth.thread], ..Select::default() };
        let mut watch = Watch::new(Config { select, monotonic: true, ..Config::default() }, 0);
        watch.deadline(Key { kind: JobKind::Thread, actor: Actor::Thread(truth.thread) }, DEADLINE);
        let mut late = BTreeSet::new();
        for event in &played.events {
            watch.feed(event, &mut |_| {}, &mut |whole| {
                late.insert(whole.job.start);
            });
        }
        let mut measured = Vec::new();
        let mut certain = 0;
        for &(release, end) in &truth.jobs {
            let Some(job) = played.job(truth.thread, end) else { continue };
            let response = end - release;
            let times = Measured::exact("R", job.response, response);
            // If both measured the same, a job that ends near its deadline may still be judged
            // either way.
            if times.agrees() && response.abs_diff(DEADLINE) > DEADLINE / 20 {
                assert_eq!(late.contains(&job.start), response > DEADLINE, "{response} {job:?}");
                certain += usize::from(response > DEADLINE);
            }
            measured.push(times);
        }
        assert!(certain > 0, "every fourth is late");
        measured
    });
}
