//! The rules for tasks of an app, with one scenario for each.

use std::sync::Arc;

use super::log::{Log, Seen};
use super::{EQUAL_TO_THE_TAIL, HIGHER_AT_ONCE, LOWER_WAITS, NO_DEADLOCK, NO_INVERSION, Rule};
use super::{YIELD_LETS_THE_EQUAL_RUN, runs};
use crate::session::{Session, Step};
use crate::subject::Subject;

#[derive(Debug, Clone, Copy)]
enum Scenario {
    LowerWaits,
    EqualToTheTail,
    Yield,
    HigherAtOnce,
    Inversion,
    OppositeOrders,
}

pub(super) fn steps() -> Vec<Step> {
    let step = |rule: Rule, scenario: Scenario, read: fn(&Log) -> String| {
        Step::new(format!("tasks: {}", rule.text), move |session| {
            if let Some(seen) = play(session, scenario, read) {
                rule.check_of(session, Subject::Punctual, &seen);
            }
        })
    };
    let both_end = |log: &Log| match log.completion().as_str() {
        "2-1" | "1-2" => NO_DEADLOCK.expected.to_owned(),
        other => format!("only {other} ended"),
    };
    vec![
        step(LOWER_WAITS, Scenario::LowerWaits, Log::order),
        step(EQUAL_TO_THE_TAIL, Scenario::EqualToTheTail, Log::order),
        step(YIELD_LETS_THE_EQUAL_RUN, Scenario::Yield, Log::order),
        step(HIGHER_AT_ONCE, Scenario::HigherAtOnce, Log::order),
        step(NO_INVERSION, Scenario::Inversion, Log::completion),
        step(NO_DEADLOCK, Scenario::OppositeOrders, both_end),
    ]
}

/// Runs it several times on real threads; if it cannot run, a note of the suite contains the
/// reason.
fn play(session: &mut Session<'_>, scenario: Scenario, read: fn(&Log) -> String) -> Option<Seen> {
    let mut seen = Seen::default();
    for _ in 0..runs(session) {
        if session.stop.is_requested() {
            break;
        }
        let log = Arc::new(Log::default());
        // A deadlock would end there, rather than with the report.
        let limit = punctual::Duration::from_secs(5);
        let config = punctual::Config::new().cpu(session.plan.cpu).until(limit);
        if let Err(error) = app::run(config, scenario, log.clone()) {
            session.note(format!("Rules for tasks were not checked: {error}"));
            return None;
        }
        seen.add(read(&log));
    }
    Some(seen)
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        first: u32,
        second: u32,
        log: Arc<Log>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, scenario: Scenario, log: Arc<Log>) -> (Shared, Local) {
        match scenario {
            Scenario::LowerWaits => two::spawn(scenario).expect("it is spawned once"),
            Scenario::Yield => yields::spawn().expect("it is spawned once"),
            _ => one::spawn(scenario).expect("it is spawned once"),
        }
        (Shared { first: 0, second: 0, log }, Local {})
    }

    /// Runs below all other tasks, and therefore last.
    #[task(priority = 1)]
    fn end(_: end::Context) {
        punctual::shutdown();
    }

    #[task(priority = 2, capacity = 4, shared = [first, second, &log])]
    fn one(mut cx: one::Context, scenario: Scenario) {
        let log = cx.shared.log;
        end::spawn().expect("it is spawned once");
        match scenario {
            Scenario::LowerWaits => log.event("lower runs"),
            Scenario::EqualToTheTail => {
                log.event("creator begins");
                equal::spawn("first runs").expect("it fits");
                equal::spawn("second runs").expect("it fits");
                log.event("creator ends");
            }
            Scenario::HigherAtOnce => {
                log.event("creator begins");
                two::spawn(scenario).expect("it runs at once");
                log.event("creator ends");
            }
            Scenario::Inversion => {
                cx.shared.first.lock(|first| {
                    two::spawn(scenario).expect("it fits");
                    *first += 1;
                });
                log.event("1 ends");
            }
            Scenario::OppositeOrders => {
                cx.shared.first.lock(|first| {
                    two::spawn(scenario).expect("it fits");
                    cx.shared.second.lock(|second| *second += *first);
                });
                log.event("1 ends");
            }
            Scenario::Yield => {}
        }
    }

    #[task(priority = 2, capacity = 4, shared = [&log])]
    fn equal(cx: equal::Context, name: &'static str) {
        cx.shared.log.event(name);
    }

    #[task(priority = 2, shared = [&log])]
    async fn yields(cx: yields::Context) {
        end::spawn().expect("it is spawned once");
        equal::spawn("equal runs").expect("it fits");
        cx.shared.log.event("creator yields");
        let mut yielded = false;
        poll_fn(|context| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        cx.shared.log.event("creator continues");
    }

    #[task(priority = 3, shared = [first, second, &log])]
    fn two(mut cx: two::Context, scenario: Scenario) {
        let log = cx.shared.log;
        match scenario {
            Scenario::LowerWaits => {
                log.event("creator begins");
                one::spawn(scenario).expect("it fits");
                log.event("creator ends");
            }
            Scenario::HigherAtOnce => log.event("higher runs"),
            Scenario::Inversion => {
                three::spawn().expect("it runs at once");
                log.event("2 ends");
            }
            Scenario::OppositeOrders => {
                cx.shared.second.lock(|second| cx.shared.first.lock(|first| *first += *second));
                log.event("2 ends");
            }
            Scenario::EqualToTheTail | Scenario::Yield => {}
        }
    }

    #[task(priority = 4, shared = [first, &log])]
    fn three(mut cx: three::Context) {
        cx.shared.first.lock(|first| *first += 1);
        cx.shared.log.event("3 ends");
    }
}
