//! Likely values of SS and C that are known only within bounds.

use crate::support::{IDLE, Script, jobs, of, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Event, Kind, Task};
use punctual_trace::explain;
use punctual_trace::export::json;
use punctual_trace::jobs::{Bounds, Config};
use punctual_trace::names::Names;
use punctual_trace::stats::Watch;

const CONTROL: Task = task(7, 10);
const URGENT: Task = task(9, 5);
const CALL: u32 = 230;

/// It returns from its sleep, computes for 600 µs without a call, is displaced in the middle, and
/// sleeps again.
fn computing(calls: bool) -> Script {
    let mut s = Script::new();
    for job in 1..4 {
        let t = job * 10_000_000;
        s.waking(t, 0, CONTROL, 0).switch(t + 5_000, 0, Runnable, CONTROL);
        if calls {
            s.at(t + 7_000, 0, Kind::SyscallExit { number: CALL });
        }
        s.waking(t + 300_000, 0, URGENT, 0).switch(t + 303_000, 0, Runnable, URGENT);
        s.switch(t + 400_000, 0, Sleeping, CONTROL);
        if calls {
            s.at(t + 700_000, 0, Kind::SyscallEnter { number: CALL });
        }
        s.switch(t + 703_000, 0, Sleeping, IDLE);
    }
    s
}

#[test]
fn gives_likely_values_beside_certain_bounds() {
    let jobs = computing(true).jobs(Config::default());
    let job = of(&jobs, 7)[2];
    // Without evidence, all of the time may be overhead; entry and exit around the displacement
    // took as long as those observed.
    assert!(matches!(job.overhead, Bounds::Between { lo: 0, hi } if hi > 300_000), "{:?}", job.overhead);
    let likely = job.likely_overhead.unwrap();
    assert!((5_000..=20_000).contains(&likely), "{likely}");
    assert!(job.overhead.allows(likely));
    let execution = job.likely_execution().unwrap();
    assert!(job.execution.allows(execution) && job.execution.hi() == Some(execution + likely));
    let said = explain::job(job, &Names::new()).join("\n");
    assert_eq!(said.matches("(likely ").count(), 2, "{said}");
    let object: serde_json::Value = serde_json::from_str(&json(job, &Names::new())).unwrap();
    assert_eq!(object["terms"]["SS"]["likely_ns"], likely);
    assert!(object["terms"]["R"].get("likely_ns").is_none());
}

#[test]
fn marks_likely_values_as_uncertain() {
    let mut watch = Watch::new(Config::default(), 1);
    computing(true).events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    let control = watch.tasks().iter().find(|task| task.jobs() == 3 && task.likely().is_some()).unwrap();
    assert!(explain::assumptions(control)[0].starts_with("Likely, not certain: SS at most"));
}

/// Without evidence of the scheduler's duration, there is no likely value either.
#[test]
fn gives_no_likely_value_without_evidence() {
    let mut s = Script::new();
    s.waking(1_000, 0, CONTROL, 0).switch(2_000, 0, Runnable, CONTROL).switch(90_000, 0, Sleeping, IDLE);
    assert_eq!(s.jobs(Config::default())[0].likely_overhead, None);
}

/// The end of a job that only computes is no evidence of an entry's duration, and certainly not
/// that it is 0.
#[test]
fn jobs_without_events_give_no_evidence() {
    let mut first = Script::new();
    first.waking(1_000, 0, CONTROL, 0).switch(2_000, 0, Runnable, CONTROL).switch(90_000, 0, Sleeping, IDLE);
    let after = computing(true).events;
    let both: Vec<_> = first.events.iter().chain(&after).copied().collect();
    let likely = |events: &[Event]| of(&jobs(Config::default(), events), 7).last().unwrap().likely_overhead;
    assert_eq!(likely(&both), likely(&after));
}
