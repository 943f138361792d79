//! From an event to its handler: an eventfd written by a lower thread or task, a timerfd, an
//! instant.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::timers::{self, Periodic, What};
use super::{Condition, Contender, Window, affordable, alternate, cyclictest, row};
use crate::clock;
use crate::machine::isolated as isolated_cpus;
use crate::model::Row;
use crate::options::Plan;
use crate::rt::{self, Lack};
use crate::session::{Session, Step, Unit};
use crate::subject::{Subject, outcome};

/// The interval of a timer.
pub(super) const INTERVAL_NS: u64 = 500_000;

/// The release at an instant under load, on an isolated CPU and on a CPU that is not isolated.
pub(super) fn isolated(plan: &Plan) -> Vec<Step> {
    let isolated = isolated_cpus();
    let allowed = rt::allowed_cpus();
    let on = |is_isolated: bool| {
        let cpu = allowed.iter().rev().copied().find(|&cpu| isolated.has(cpu) == is_isolated);
        let name = if is_isolated { "load, isolated" } else { "load, not isolated" };
        Step::new(format!("release at an instant, {name}"), move |session| match cpu {
            Some(cpu) => {
                let _load = Condition::Load.begin(session);
                instants(session, cpu, name);
            }
            None => {
                let row = |subject| row("instant", INSTANT, subject).under(name);
                for subject in [Subject::Punctual, Subject::Posix] {
                    session.add_unmeasured(
                        row(subject),
                        "no CPU is isolated; boot with isolcpus=, or run this under `punctual isolate run`",
                    );
                }
            }
        })
    };
    // Without isolation the other row is the one under load.
    let has_isolated = isolated.has(plan.cpu);
    [true, false].into_iter().filter(|&is_isolated| is_isolated || has_isolated).map(on).collect()
}

pub(super) fn steps(condition: Condition) -> Vec<Step> {
    let name = condition.name();
    vec![
        Step::new(format!("eventfd to handler, {name}"), move |session| {
            let _load = condition.begin(session);
            let operation = "eventfd: from the write to the handler";
            let row = |subject| row("eventfd", operation, subject).under(name);
            let cpu = session.plan.cpu;
            let contenders = vec![
                Contender::new(row(Subject::Punctual), Unit::Ticks, move |window| {
                    let event =
                        eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| format!("no eventfd: {error}"))?;
                    let out = Out { window: window.clone(), mark: AtomicU64::new(0) };
                    outcome(app::run(punctual::Config::new().cpu(cpu), out, Arc::new(event)))
                }),
                Contender::new(row(Subject::Posix), Unit::Ticks, move |window| {
                    threads(window, cpu, Handler::Reads)
                }),
                Contender::new(polling(row(Subject::Posix)), Unit::Ticks, move |window| {
                    threads(window, cpu, Handler::Polls)
                }),
            ];
            alternate(session, session.samples(), contenders);
        }),
        Step::new(format!("timerfd to handler, {name}"), move |session| {
            let _load = condition.begin(session);
            let operation = "timerfd: from its instant to the handler";
            let row = |subject| row("timerfd", operation, subject).under(name);
            let what = Periodic { interval_ns: INTERVAL_NS, what: What::Lateness };
            let cpu = session.plan.cpu;
            let samples = affordable(session.plan, INTERVAL_NS);
            let contenders = vec![
                Contender::new(row(Subject::Punctual), Unit::Nanos, timers::tasks(what, cpu)),
                Contender::new(row(Subject::Posix), Unit::Nanos, timers::threads(what, cpu)),
            ];
            alternate(session, samples, contenders);
        }),
        Step::new(format!("release at an instant, {name}"), move |session| {
            let _load = condition.begin(session);
            instants(session, session.plan.cpu, name);
        }),
    ]
}

/// Returns the row of a thread that waits without reading.
fn polling(posix: Row) -> Row {
    Row { id: posix.id.replace("/posix", "/ppoll"), subject: "POSIX, ppoll".into(), ..posix }
}

const INSTANT: &str = "An instant: from it to the code released by it";

/// A job spawned for an instant, compared with threads that sleep until one, at SCHED_FIFO and at
/// SCHED_DEADLINE, and with cyclictest if installed.
fn instants(session: &mut Session<'_>, cpu: usize, condition: &str) {
    let row = |subject| row("instant", INSTANT, subject).under(condition);
    let samples = affordable(session.plan, INTERVAL_NS);
    let external = cyclictest::Cyclictest::new(cpu, INTERVAL_NS, session.no_fifo.is_none());
    let spawned = row(Subject::Punctual);
    let periodic = Row {
        id: spawned.id.replace("/punctual", "/periodic"),
        subject: "Punctual, periodic".into(),
        ..spawned.clone()
    };
    let mut contenders = vec![
        Contender::new(spawned, Unit::Nanos, timers::spawn_at(INTERVAL_NS, 0, cpu)),
        Contender::new(periodic, Unit::Nanos, move |window| timers::periodic(window, cpu)),
        Contender::new(row(Subject::Posix), Unit::Nanos, timers::nanosleep(INTERVAL_NS, 0, cpu)),
    ];
    let posix = row(Subject::Posix);
    let deadline =
        Row { id: posix.id.replace("/posix", "/deadline"), subject: "SCHED_DEADLINE".into(), ..posix };
    match session.no_fifo {
        None => contenders.push(Contender::new(deadline, Unit::Nanos, timers::deadline(INTERVAL_NS))),
        Some(_) => session.add_unmeasured(deadline, "SCHED_DEADLINE requires root (CAP_SYS_NICE)"),
    }
    session.note("A SCHED_DEADLINE thread cannot be pinned, so it runs on any CPU.");
    match &external {
        Ok(external) => {
            let row = cyclictest::row(row(Subject::Posix));
            contenders.push(Contender::new(row, Unit::Nanos, |window| external.measure(window)));
        }
        Err(why) => session.add_unmeasured(cyclictest::row(row(Subject::Posix)), why.as_str()),
    }
    alternate(session, samples, contenders);
}

/// The tasks' output.
#[derive(Debug)]
struct Out {
    window: Window,
    mark: AtomicU64,
}

fn write(event: &OwnedFd) {
    // The count is far from its limit, so this neither blocks nor fails.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

fn read(event: &OwnedFd) {
    // A signal may interrupt it; the caller then takes one event for another that is also present.
    let _ = rustix::io::read(event, &mut [0; 8]);
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use super::*;

    #[shared]
    struct Shared {
        out: Out,
        event: Arc<OwnedFd>,
    }

    #[local]
    struct Local {
        source: Arc<OwnedFd>,
    }

    #[init]
    fn init(_: init::Context, out: Out, event: Arc<OwnedFd>) -> (Shared, Local) {
        triggers::spawn().expect("it is spawned once");
        (Shared { out, event: event.clone() }, Local { source: event })
    }

    /// Writes, and is preempted by the handler.
    #[task(priority = 1, shared = [&out, &event])]
    fn triggers(cx: triggers::Context) {
        let out = cx.shared.out;
        while !out.window.is_over() {
            let before = out.window.recorder.len();
            out.mark.store(clock::now(), Ordering::Release);
            write(cx.shared.event);
            // At once if the levels preempt each other.
            out.window.await_sample_after(before);
        }
        punctual::shutdown();
    }

    #[task(binds = source, priority = 2, shared = [&out], local = [source])]
    fn handles(cx: handles::Context) {
        let now = clock::now();
        let out = cx.shared.out;
        read(cx.local.source);
        out.window.recorder.push(now.saturating_sub(out.mark.load(Ordering::Acquire)));
    }
}

/// The call in which a thread waits for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handler {
    /// In `read`.
    Reads,
    /// In `ppoll`, as a bound task does, whose job reads.
    Polls,
}

/// The same with a handling thread.
fn threads(window: &Window, cpu: usize, handler: Handler) -> Result<Lack, String> {
    let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| format!("no eventfd: {error}"))?;
    let (mark, ended, ready) = (AtomicU64::new(0), AtomicBool::new(false), Barrier::new(2));
    let handles = || {
        let lack = rt::enter(cpu, rt::PRIORITY + 1);
        ready.wait();
        loop {
            let now = match handler {
                Handler::Reads => {
                    read(&event);
                    clock::now()
                }
                Handler::Polls => {
                    // If a signal interrupts it, the read waits.
                    let _ = poll(&mut [PollFd::new(&event, PollFlags::IN)], None);
                    let now = clock::now();
                    read(&event);
                    now
                }
            };
            if ended.load(Ordering::Acquire) {
                return lack;
            }
            window.recorder.push(now.saturating_sub(mark.load(Ordering::Acquire)));
        }
    };
    let triggers = || {
        let lack = rt::enter(cpu, rt::PRIORITY);
        ready.wait();
        while !window.is_over() {
            let before = window.recorder.len();
            mark.store(clock::now(), Ordering::Release);
            write(&event);
            window.await_sample_after(before);
        }
        ended.store(true, Ordering::Release);
        write(&event);
        lack
    };
    Ok(std::thread::scope(|scope| {
        let (handles, triggers) = (rt::spawn(scope, handles), rt::spawn(scope, triggers));
        let mut lack = rt::join(triggers);
        lack.extend(rt::join(handles));
        lack
    }))
}
