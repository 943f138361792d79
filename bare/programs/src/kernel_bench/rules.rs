//! Sections III.B and IV of Cunningham: the rules of threads, priority inversion, two resources
//! requested crosswise, the sequence of a semaphore, and registers across a preemption. A verdict
//! depends only on the order of events.

use core::str;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use punctual_kernel::{Group, OrderedGuards};

use super::{Mutex, OrderedMutex, STACKS, Semaphore, Thread, Threads, registers, run};
use crate::bench::{Check, Report};

/// Name, rule and expectation, as in the suite `behavior` of `punctual bench`, and the threads
/// that make the events.
struct Rule {
    slug: &'static str,
    text: &'static str,
    expected: &'static str,
    threads: &'static Threads,
}

const RULES: [Rule; 8] = [
    Rule {
        slug: "lower-waits",
        text: "a lower one that is created waits",
        expected: "creator begins, creator ends, lower runs",
        threads: &[(5, lower_waits)],
    },
    Rule {
        slug: "equal-tail",
        text: "equal ones go to the tail",
        expected: "creator begins, creator ends, first runs, second runs",
        threads: &[(5, equal_to_the_tail)],
    },
    Rule {
        slug: "yield",
        text: "a yield lets the equal one run",
        expected: "creator yields, equal runs, creator continues",
        threads: &[(5, yields)],
    },
    Rule {
        slug: "higher-at-once",
        text: "a higher one that is created runs at once",
        expected: "creator begins, higher runs, creator ends",
        threads: &[(5, higher_at_once)],
    },
    Rule {
        slug: "inversion",
        text: "no priority inversion: 1 holds what 3 wants, 2 wants nothing; they end by priority",
        expected: "3-2-1",
        threads: &[(4, inversion)],
    },
    Rule {
        slug: "deadlock",
        text: "locking in opposite orders comes to an end",
        expected: "both end",
        threads: &[(4, crosswise)],
    },
    Rule {
        slug: "semaphore",
        text: "a semaphore blocks only at zero: P, then 3 V and 4 P",
        expected: "P blocks, V, P done, V, V, V, P done, P done, P done, P blocks, V, P done",
        threads: &[(5, takes), (4, gives)],
    },
    Rule {
        slug: "registers",
        text: "flags, general and vector registers and the rounding mode survive a preemption",
        expected: registers::PRESERVED,
        threads: &[(4, registers::survive)],
    },
];

/// Number of runs per rule.
const RUNS: usize = 64;

/// Checks the rules and prints the observations.
pub fn check(report: &mut Report) {
    report.suite("behavior", "Rules of scheduling and locking");
    report.checks();
    for rule in RULES {
        let mut text = [0; ROOM];
        for _ in 0..RUNS {
            LENGTH.store(0, Ordering::Relaxed);
            run(rule.threads);
            if events(&mut text) != rule.expected {
                break;
            }
        }
        let observed = events(&mut text);
        report.check(&Check {
            slug: rule.slug,
            rule: rule.text,
            expected: rule.expected,
            observed,
            runs: RUNS,
        });
    }
}

const ROOM: usize = 128;

/// The events of a run, in order.
static EVENTS: [AtomicU8; ROOM] = [const { AtomicU8::new(0) }; ROOM];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Records an event.
pub(super) fn event(what: &str) {
    if LENGTH.load(Ordering::Relaxed) > 0 {
        note(", ");
    }
    note(what);
}

fn note(text: &str) {
    let at = LENGTH.fetch_add(text.len(), Ordering::Relaxed);
    for (place, byte) in EVENTS.iter().skip(at).zip(text.bytes()) {
        place.store(byte, Ordering::Relaxed);
    }
}

fn events(text: &mut [u8; ROOM]) -> &str {
    let length = LENGTH.load(Ordering::Relaxed).min(ROOM);
    for (byte, place) in text.iter_mut().zip(&EVENTS[..length]) {
        *byte = place.load(Ordering::Relaxed);
    }
    str::from_utf8(&text[..length]).unwrap_or("too many events")
}

fn lower_waits(_: ()) {
    event("creator begins");
    Thread::spawn(4, &STACKS[1], event, "lower runs").unwrap();
    event("creator ends");
}

fn equal_to_the_tail(_: ()) {
    event("creator begins");
    Thread::spawn(5, &STACKS[1], event, "first runs").unwrap();
    Thread::spawn(5, &STACKS[2], event, "second runs").unwrap();
    event("creator ends");
}

fn yields(_: ()) {
    Thread::spawn(5, &STACKS[1], event, "equal runs").unwrap();
    event("creator yields");
    Thread::yield_now();
    event("creator continues");
}

fn higher_at_once(_: ()) {
    event("creator begins");
    Thread::spawn(6, &STACKS[1], event, "higher runs").unwrap();
    event("creator ends");
}

fn inversion(_: ()) {
    static RESOURCE: Mutex<()> = Mutex::new("resource", ());
    let guard = RESOURCE.lock().unwrap();
    let two = |()| {
        let three = |()| {
            drop(RESOURCE.lock().unwrap());
            note("3");
        };
        Thread::spawn(6, &STACKS[2], three, ()).unwrap();
        note("-2");
    };
    Thread::spawn(5, &STACKS[1], two, ()).unwrap();
    drop(guard);
    note("-1");
}

static GROUP: Group = Group::new();
static R1: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 1, "r1", 0);
static R2: OrderedMutex<u32> = OrderedMutex::new(&GROUP, 2, "r2", 0);

fn crosswise(_: ()) {
    let other = |()| {
        let r2 = R2.lock().unwrap();
        let (both, _) = r2.and_lock(&R1).unwrap();
        drop(both);
        note("both");
    };
    let r1 = R1.lock().unwrap();
    Thread::spawn(5, &STACKS[1], other, ()).unwrap();
    let (both, _) = r1.and_lock(&R2).unwrap();
    drop(both);
    note(" end");
}

static UNITS: Semaphore = Semaphore::new(0, 9);
static GO: Semaphore = Semaphore::new(0, 9);

fn takes(_: ()) {
    for count in [1, 4] {
        GO.p().unwrap();
        for _ in 0..count {
            UNITS.p().unwrap();
            event("P done");
        }
    }
}

/// The lower thread, which runs only while the other waits.
fn gives(_: ()) {
    let v = || {
        event("V");
        UNITS.v().unwrap();
    };
    GO.v().unwrap();
    event("P blocks");
    v();
    (0..3).for_each(|_| v());
    GO.v().unwrap();
    event("P blocks");
    v();
}
