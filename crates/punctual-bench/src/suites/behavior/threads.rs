//! The rules for POSIX threads with SCHED_FIFO: the kernel's behavior in the scenarios used for
//! tasks.

use super::log::{Log, Seen};
use super::{EQUAL_TO_THE_TAIL, HIGHER_AT_ONCE, LOWER_WAITS, Rule, YIELD_LETS_THE_EQUAL_RUN, runs};
use crate::peers::{Attributes, Thread};
use crate::rt;
use crate::session::{Session, Step};
use crate::subject::Subject;

/// Runs a scenario on the thread that creates others.
type Play = fn(&Creator<'_>);

pub(super) fn steps() -> Vec<Step> {
    let rules: [(Rule, Play); 4] = [
        (LOWER_WAITS, |creator| {
            creator.log.event("creator begins");
            creator.with(-1, &|| creator.log.event("lower runs"), || creator.log.event("creator ends"));
        }),
        (EQUAL_TO_THE_TAIL, |creator| {
            creator.log.event("creator begins");
            creator.with(0, &|| creator.log.event("first runs"), || {
                creator.with(0, &|| creator.log.event("second runs"), || creator.log.event("creator ends"));
            });
        }),
        (YIELD_LETS_THE_EQUAL_RUN, |creator| {
            creator.with(0, &|| creator.log.event("equal runs"), || {
                creator.log.event("creator yields");
                std::thread::yield_now();
                creator.log.event("creator continues");
            });
        }),
        (HIGHER_AT_ONCE, |creator| {
            creator.log.event("creator begins");
            creator.with(1, &|| creator.log.event("higher runs"), || creator.log.event("creator ends"));
        }),
    ];
    let step = |(rule, scenario): (Rule, Play)| {
        Step::new(format!("threads: {}", rule.text), move |session: &mut Session<'_>| {
            let mut seen = Seen::default();
            for _ in 0..runs(session) {
                let log = Log::default();
                let (cpu, fifo) = (session.plan.cpu, session.no_fifo.is_none());
                rt::on_thread(cpu, rt::PRIORITY, |_| scenario(&Creator { log: &log, cpu, fifo }));
                seen.add_run(&log, Log::order);
            }
            rule.check_of(session, Subject::Posix, &seen);
        })
    };
    rules.into_iter().map(step).collect()
}

/// A thread that creates others.
struct Creator<'a> {
    log: &'a Log,
    cpu: usize,
    fifo: bool,
}

impl Creator<'_> {
    /// Creates a thread that runs `body`, with a priority `above` the creator's, then runs
    /// `meanwhile`, and joins the thread.
    fn with(&self, above: i32, body: &(impl Fn() + Sync), meanwhile: impl FnOnce()) {
        let attributes = Attributes::new(self.cpu, rt::PRIORITY + above, self.fifo);
        with_thread(self.log, &attributes, body, meanwhile);
    }
}

/// Creates a thread that runs `body`, runs `meanwhile`, and joins the thread. If it is not started,
/// the log records that.
pub(super) fn with_thread(
    log: &Log,
    attributes: &Attributes,
    body: &(impl Fn() + Sync),
    meanwhile: impl FnOnce(),
) {
    // SAFETY: the thread is dropped at the end of this function, also during a panic.
    let thread = unsafe { Thread::create(attributes, body) }.inspect_err(|error| log.refuse(error));
    meanwhile();
    drop(thread);
}
