//! Switching between tasks (listing 1 of Balciunas): two tasks that spawn each other in turn, at
//! one level and at two; and the same between two threads, on one CPU and on two.
//!
//! Locking (section 6.2.2 and listing 2): an uncontended lock, and the release of one for which a
//! lower thread or task waits.

use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::sync::TimedQueue;

use super::{Contender, Window, alternate, partitions, row};
use crate::contend::{self, Lock};
use crate::model::Quantity;
use crate::peers::Semaphore;
use crate::published::{self, Rtic};
use crate::recorder::Recorder;
use crate::rt::{self, Lack};
use crate::session::{Measured, Session, Step, Unit};
use crate::stats::Statistics;
use crate::subject::{Subject, refused_settings};
use crate::suites::rtos::{locks, tasks};
use crate::{Stop, clock};

/// The number of task switches in a sample, since a switch takes nanoseconds.
const SWITCHES: u32 = 64;

pub(super) fn steps() -> Vec<Step> {
    vec![
        Step::new("task switching at one level", |session| {
            let row =
                row("switch-level", "Task switching, one level", Subject::Punctual).per_sample(SWITCHES);
            tasks(session, row.published(published::rtic(Rtic::SameLevel)), Levels::One);
        }),
        Step::new("task switching between levels, one CPU", |session| {
            let operation = "Task switching, two levels, one CPU";
            let own = row("switch-levels", operation, Subject::Punctual).per_sample(SWITCHES);
            tasks(session, own.published(published::rtic(Rtic::LevelsOneCpu)), Levels::Two);
            let peer = row("switch-levels", operation, Subject::Posix).per_sample(2);
            let cpu = session.plan.cpu;
            let contender =
                Contender::new(peer, Unit::Ticks, move |window| Ok(semaphores(window, [cpu, cpu])));
            alternate(session, session.samples(), vec![contender]);
        }),
        Step::new("task switching between two CPUs", two_cpus),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Levels {
    One,
    Two,
}

/// The tasks' output.
#[derive(Debug)]
struct Out {
    recorder: Arc<Recorder>,
    /// The end of the last sample.
    last: AtomicU64,
    stop: Stop,
}

fn tasks(session: &mut Session<'_>, row: crate::model::Row, levels: Levels) {
    let recorder = Arc::new(Recorder::new(session.samples()));
    let out = Out { recorder: recorder.clone(), last: AtomicU64::new(0), stop: session.stop.clone() };
    match app::run(punctual::Config::new().cpu(session.plan.cpu), levels, out) {
        Ok(report) => session.add(row, &Measured::ticks(recorder, refused_settings(&report))),
        Err(error) => session.add_unmeasured(row, error.to_string()),
    }
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use super::*;

    #[shared]
    struct Shared {
        out: Out,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, levels: Levels, out: Out) -> (Shared, Local) {
        match levels {
            Levels::One => here::spawn(1).expect("it is spawned once"),
            Levels::Two => below::spawn(1).expect("it is spawned once"),
        }
        (Shared { out }, Local {})
    }

    /// Reads the time after a sample's number of switches; returns `true` to continue.
    fn count(out: &Out, switches: u64) -> bool {
        if switches % u64::from(SWITCHES) != 1 {
            return true;
        }
        let now = clock::now();
        // Relaxed: the jobs are ordered.
        let more = match out.last.swap(now, Ordering::Relaxed) {
            0 => true,
            last => out.recorder.push(now - last),
        };
        let more = more && !out.stop.is_requested();
        if !more {
            punctual::shutdown();
        }
        more
    }

    #[task(priority = 1, capacity = 2, shared = [&out])]
    fn here(cx: here::Context, switches: u64) {
        if count(cx.shared.out, switches) {
            there::spawn(switches + 1).expect("one waits at a time");
        }
    }

    #[task(priority = 1, capacity = 2)]
    fn there(_: there::Context, switches: u64) {
        here::spawn(switches + 1).expect("one waits at a time");
    }

    #[task(priority = 1, capacity = 2, shared = [&out])]
    fn below(cx: below::Context, switches: u64) {
        if count(cx.shared.out, switches) {
            above::spawn(switches + 1).expect("it runs at once");
        }
    }

    #[task(priority = 2, capacity = 2)]
    fn above(_: above::Context, switches: u64) {
        below::spawn(switches + 1).expect("one waits at a time");
    }
}

/// Two threads wake each other by semaphores; a sample is a round trip.
fn semaphores(window: &Window, cpus: [usize; 2]) -> Lack {
    let (there, back) = (Semaphore::new(0), Semaphore::new(0));
    ping_pong(
        window,
        cpus,
        |_| {
            there.signal();
            back.acquire();
        },
        |_| {
            there.acquire();
            back.signal();
        },
    )
}

/// The same with queues of `punctual-sync`.
fn queues(window: &Window, cpus: [usize; 2]) -> Lack {
    let (there, back) = (TimedQueue::<u64, 4>::new(), TimedQueue::<u64, 4>::new());
    let mut at_home = back.receiver().expect("nobody else receives");
    let mut away = there.receiver().expect("nobody else receives");
    ping_pong(
        window,
        cpus,
        |round| {
            there.send(round).expect("one item at a time");
            at_home.recv();
        },
        |_| {
            let item = away.recv();
            back.send(item.value).expect("one item at a time");
        },
    )
}

/// Runs as many rounds as samples are needed: `here` starts one and waits for its end, `away`
/// answers.
fn ping_pong(
    window: &Window,
    cpus: [usize; 2],
    mut here: impl FnMut(u64) + Send,
    mut away: impl FnMut(u64) + Send,
) -> Lack {
    let ready = Barrier::new(2);
    let rounds = window.until.saturating_sub(window.recorder.len()) as u64;
    // Fixed for both: a stop ends the run after this window, which takes milliseconds.
    let rounds = if window.stop.is_requested() { 0 } else { rounds };
    std::thread::scope(|scope| {
        let away = rt::spawn(scope, || {
            let lack = rt::enter(cpus[1], rt::PRIORITY + 1);
            ready.wait();
            (0..rounds).for_each(&mut away);
            lack
        });
        let here = rt::spawn(scope, || {
            let mut lack = rt::enter(cpus[0], rt::PRIORITY);
            ready.wait();
            for round in 0..rounds {
                let from = clock::now();
                here(round);
                window.recorder.push(clock::now() - from);
            }
            lack.dedup();
            lack
        });
        let mut lack = rt::join(here);
        lack.extend(rt::join(away));
        lack
    })
}

/// The number of round trips of a cache line in a window.
const LINE_TRIPS: u32 = 512;

/// Two CPUs: measures a cache line, a semaphore and a queue, in turns.
fn two_cpus(session: &mut Session<'_>) {
    let operation = "Task switching, two CPUs";
    let sync = row("switch-cpus", operation, Subject::Sync).per_sample(2);
    let posix = row("switch-cpus", operation, Subject::Posix).per_sample(2);
    let own =
        row("switch-cpus", operation, Subject::Punctual).published(published::rtic(Rtic::LevelsTwoCpus));
    let own = own.per_sample(2);
    let polled =
        row("switch-cpus-poll", "Task switching, two CPUs, one polls", Subject::Punctual).per_sample(2);
    let spun = row("switch-cpus-spin", "Task switching, two CPUs, both spin for 50 µs", Subject::Punctual)
        .per_sample(2);
    let Some(other) = session.plan.other_cpu else {
        for row in [own, polled, spun, sync, posix] {
            session.add_unmeasured(row, "this process may use only one CPU");
        }
        return;
    };
    let (cpus, samples) = ([session.plan.cpu, other], session.samples());
    let lines = std::cell::RefCell::new(Vec::new());
    type Measure = fn(&Window, [usize; 2]) -> Result<Lack, String>;
    let with_line = |measure: Measure| {
        let lines = &lines;
        move |window: &Window| {
            lines.borrow_mut().push(cache_line(cpus));
            let lack = measure(window, cpus);
            lines.borrow_mut().push(cache_line(cpus));
            lack
        }
    };
    let contenders = vec![
        Contender::new(own, Unit::Ticks, with_line(partitions::sleeping)),
        Contender::new(polled, Unit::Ticks, with_line(partitions::polling)),
        Contender::new(spun, Unit::Ticks, with_line(partitions::spinning)),
        Contender::new(sync, Unit::Ticks, with_line(|window, cpus| Ok(queues(window, cpus)))),
        Contender::new(posix, Unit::Ticks, with_line(|window, cpus| Ok(semaphores(window, cpus)))),
    ];
    alternate(session, samples, contenders);
    let clock = session.clock;
    let mut statistics = Statistics::new();
    for ticks in lines.into_inner() {
        statistics.record_ps(clock.ps(ticks) / u64::from(2 * LINE_TRIPS));
    }
    let line = statistics.distribution();
    let beside = line.as_ref().map(|line| Quantity {
        name: "a cache line meanwhile, one way, median".into(),
        value: line.p50_ns,
        unit: "ns".into(),
    });
    session.quantify(operation, beside);
    let row =
        row("cache-line", "Cache line from CPU to CPU, one way", Subject::Posix).per_sample(2 * LINE_TRIPS);
    let row =
        crate::model::Row { subject: "two spinning threads".into(), id: "latency/cache-line".into(), ..row };
    session.add_plain(row, line);
}

/// Returns the ticks for the trips of a cache line between two CPUs. The threads are ordinary,
/// since they spin.
fn cache_line(cpus: [usize; 2]) -> u64 {
    #[repr(align(128))]
    struct Line(AtomicU64);

    let line = Line(AtomicU64::new(0));
    let trips = u64::from(LINE_TRIPS);
    let ready = Barrier::new(2);
    // One thread increments even numbers, the other odd ones.
    let play = |cpu: usize, mine: u64| {
        // If refused, it runs on arbitrary CPUs.
        let _ = rt::pin(cpu);
        ready.wait();
        let from = clock::now();
        for trip in 0..trips {
            let awaited = 2 * trip + mine;
            while line.0.load(Ordering::Acquire) != awaited {
                std::hint::spin_loop();
            }
            line.0.store(awaited + 1, Ordering::Release);
        }
        clock::now() - from
    };
    std::thread::scope(|scope| {
        let first = rt::spawn(scope, || play(cpus[0], 0));
        let second = rt::spawn(scope, || play(cpus[1], 1));
        rt::join(first);
        rt::join(second)
    })
}

pub(super) fn lock_steps() -> Vec<Step> {
    vec![
        Step::new("lock and unlock, resource", |session| {
            if let Some((lock, unlock)) = tasks::lock_and_unlock(session) {
                add_uncontended(session, Subject::Punctual, &lock, &unlock);
            }
        }),
        Step::new("lock and unlock, punctual-sync", |session| {
            uncontended(session, Subject::Sync, &contend::pcp())
        }),
        Step::new("lock and unlock, POSIX", |session| {
            uncontended(session, Subject::Posix, &contend::posix())
        }),
        Step::new("lock and unlock, pcp-mutex", |session| {
            uncontended(session, Subject::PcpMutex, &contend::predecessor());
        }),
        Step::new("release, resource", |session| {
            let row = release_row(Subject::Punctual).published(published::rtic(Rtic::ContendedUnlock));
            if let Some(measured) = tasks::release(session) {
                session.add(row, &measured);
            }
        }),
        Step::new("release, punctual-sync", |session| release(session, Subject::Sync, &contend::pcp())),
        Step::new("release, POSIX", |session| release(session, Subject::Posix, &contend::posix())),
    ]
}

fn uncontended(session: &mut Session<'_>, subject: Subject, lock: &impl Lock) {
    let (lock, unlock) = locks::lock_and_unlock(session, lock);
    add_uncontended(session, subject, &lock, &unlock);
}

fn add_uncontended(session: &mut Session<'_>, subject: Subject, lock: &Measured, unlock: &Measured) {
    let locked = row("lock", "Lock, uncontended", subject).published(published::rtic(Rtic::Lock));
    session.add(locked, lock);
    let unlocked = row("unlock", "Unlock, uncontended", subject).published(published::rtic(Rtic::Unlock));
    session.add(unlocked, unlock);
}

fn release_row(subject: Subject) -> crate::model::Row {
    row("release", "Unlock, a lower one waits: until the call returns", subject)
}

fn release(session: &mut Session<'_>, subject: Subject, lock: &impl Lock) {
    let (recorder, lack) = contend::release(lock, session.plan.cpu, session.samples(), session.stop);
    session.add(release_row(subject), &Measured::ticks(recorder, lack));
}
