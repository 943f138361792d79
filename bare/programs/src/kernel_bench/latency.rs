//! Tables 3 and 4 of Cunningham: the length of a period of pulses as counted by a handler, and the
//! latency of delayed execution.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::{Callback, Kernel, STACKS, Semaphore, Server, Thread, WANTED, are_wanted, begin, end};
use crate::bench::{self, Report, Row};
use crate::pins::{self, Response, Stimulus};

static SERVER: Server = Server::new();
static DELAYED: Callback = Callback::new(&SERVER, runs, 0);
static DONE: Semaphore = Semaphore::new(0, 1);
/// The requested time in nanoseconds.
static NOMINAL: AtomicU32 = AtomicU32::new(0);

const DELAYS: [(&str, &str, u32); 9] = [
    ("latency/delay-10", "Delayed by 10.0 µs", 10_000),
    ("latency/delay-20", "Delayed by 20.0 µs", 20_000),
    ("latency/delay-50", "Delayed by 50.0 µs", 50_000),
    ("latency/delay-100", "Delayed by 100 µs", 100_000),
    ("latency/delay-200", "Delayed by 200 µs", 200_000),
    ("latency/delay-500", "Delayed by 500 µs", 500_000),
    ("latency/delay-1000", "Delayed by 1.00 ms", 1_000_000),
    ("latency/delay-5000", "Delayed by 5.00 ms", 5_000_000),
    ("latency/delay-10000", "Delayed by 10.0 ms", 10_000_000),
];

const PULSES: [(&str, &str, u32); 5] = [
    ("latency/pulse-20", "Pulses of 20.0 µs", 20_000),
    ("latency/pulse-40", "Pulses of 40.0 µs", 40_000),
    ("latency/pulse-160", "Pulses of 160 µs", 160_000),
    ("latency/pulse-1000", "Pulses of 1.00 ms", 1_000_000),
    ("latency/pulse-2000", "Pulses of 2.00 ms", 2_000_000),
];

/// Measures and prints both tables. Pulses need the pins of the latency program.
pub fn measure(report: &mut Report, pins: &mut (Stimulus, Response)) {
    report.suite("latency", "Switching, locking, events, delays and pulses");
    SERVER.start(12, &STACKS[3]).unwrap();
    for (slug, operation, nominal) in DELAYS {
        row(report, slug, operation, nominal, delays);
    }
    let wire = pins::check_wire(pins);
    for pulse in PULSES {
        pulses::row(report, wire, pulse);
    }
    report.checks();
}

/// Measures and prints a row for which a thread at priority 5 takes the samples.
fn row(report: &mut Report, slug: &str, operation: &str, nominal: u32, thread: fn(())) {
    NOMINAL.store(nominal, Ordering::Relaxed);
    bench::forget();
    WANTED.store(bench::SAMPLES_PER_ROW, Ordering::Relaxed);
    // A thread that has stopped the kernel exists until it runs again, so each row uses the stack
    // of the row before the last.
    static ROW: AtomicUsize = AtomicUsize::new(0);
    let stack = &STACKS[ROW.fetch_add(1, Ordering::Relaxed) % 2];
    Thread::spawn(5, stack, thread, ()).unwrap();
    Kernel::run();
    report.row(&idle(slug, operation, nominal));
}

fn idle<'a>(slug: &'a str, operation: &'a str, nominal: u32) -> Row<'a> {
    Row { slug, operation, condition: Some("idle"), nominal: Some(nominal) }
}

fn delays(_: ()) {
    while are_wanted() {
        begin();
        DELAYED.after(NOMINAL.load(Ordering::Relaxed).into());
        DONE.p().unwrap();
    }
    Kernel::stop();
}

fn runs(_: usize) {
    end();
    DONE.v().unwrap();
}

/// Edges at a pin, made by a periodic callback and counted by the handler of the pin's interrupt.
mod pulses {
    use core::sync::atomic::Ordering;

    use super::super::BEGAN;
    use super::{Callback, DONE, Kernel, NOMINAL, Report, SERVER, are_wanted, begin, idle};
    use crate::pins::EDGE;
    use crate::{bench, cycles, pins};

    static PULSE: Callback = Callback::new(&SERVER, |_| _ = pins::stimulate(), 0);

    pub(super) fn row(
        report: &mut Report,
        wire: Result<(), &str>,
        (slug, operation, nominal): (&str, &str, u32),
    ) {
        match wire {
            Ok(()) => super::row(report, slug, operation, nominal, counts),
            Err(why) => report.unmeasured(&idle(slug, operation, nominal), why),
        }
    }

    fn counts(_: ()) {
        // The first edge ends no period.
        Kernel::subscribe_irq(EDGE, first).unwrap();
        let period = u64::from(NOMINAL.load(Ordering::Relaxed));
        PULSE.every(Kernel::now() + period, period).unwrap();
        DONE.p().unwrap();
        Kernel::unsubscribe_irq(EDGE);
        Kernel::subscribe_irq(EDGE, edge).unwrap();
        DONE.p().unwrap();
        PULSE.cancel();
        Kernel::unsubscribe_irq(EDGE);
        Kernel::stop();
    }

    fn first(_: u32) {
        begin();
        pins::clear_stimulus();
        DONE.v().unwrap();
    }

    fn edge(_: u32) {
        // Measures from the first instruction of a handler to that of the next.
        let now = cycles::count();
        bench::record(now.wrapping_sub(BEGAN.load(Ordering::Relaxed)));
        BEGAN.store(now, Ordering::Relaxed);
        pins::clear_stimulus();
        if !are_wanted() {
            // Further pulses may occur until the handler has unsubscribed.
            let _ = DONE.v();
        }
    }
}
