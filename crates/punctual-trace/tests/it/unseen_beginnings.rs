//! Jobs that began before their threads were first seen: the first sleep is followed by a job only
//! if it was no wait for a lock.

use crate::support::{IDLE, Script, of, task};
use punctual_trace::event::SwitchOut::{self, Runnable, Sleeping, Uninterruptible};
use punctual_trace::event::{Kind, Task};
use punctual_trace::jobs::{Bounds, Config, Job, Suspension};

const HIGH: Task = task(7, 10);
const MUTEX: u32 = 16;

/// HIGH runs when the recording begins, acts, sleeps and is woken twice.
fn running(does: &[Kind], sleeps: SwitchOut, then: &[Kind]) -> Script {
    let mut s = Script::new();
    s.switch(50, 0, Runnable, HIGH);
    s.events.clear();
    s.at(90, 0, Kind::IrqEntry { irq: 1 }).at(95, 0, Kind::IrqExit { irq: 1 });
    does.iter().for_each(|&kind| _ = s.at(100, 0, kind));
    s.switch(110, 0, sleeps, IDLE);
    s.waking(300, 0, HIGH, 0).switch(310, 0, Runnable, HIGH);
    then.iter().for_each(|&kind| _ = s.at(320, 0, kind));
    s.switch(500, 0, Sleeping, IDLE);
    s.waking(1_000, 0, HIGH, 0).switch(1_020, 0, Runnable, HIGH).switch(1_100, 0, Sleeping, IDLE);
    s
}

fn found(script: &Script, config: Config) -> Vec<Job> {
    of(&script.jobs(config), 7).into_iter().cloned().collect()
}

/// No statement about the rest of a job would be wrong for the whole, and the next one is known
/// again.
#[test]
fn rest_of_job_is_not_a_job() {
    let futex = Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 };
    let contention = Kind::ContentionBegin { lock: 0x2000, flags: MUTEX };
    let waits: [(&[Kind], SwitchOut, &[Kind]); 3] = [
        (&[futex], Sleeping, &[Kind::FutexExit { result: 0 }]),
        (&[contention], Sleeping, &[]),
        (&[], Uninterruptible, &[]),
    ];
    for (does, sleeps, then) in waits {
        let jobs = found(&running(does, sleeps, then), Config::default());
        let (rest, next) = (&jobs[0], &jobs[1]);
        assert!(jobs.len() == 2 && rest.complete() && next.complete(), "{does:?}: {jobs:#?}");
        assert_eq!((rest.response, rest.jitter), (Bounds::Unknown, Bounds::Unknown), "{does:?}");
        assert_eq!((rest.window, rest.execution), (Bounds::AtLeast(190), Bounds::Unknown), "{does:?}");
        assert_eq!((rest.blocking, rest.overhead), (Bounds::Unknown, Bounds::Unknown), "{does:?}");
        assert_eq!((next.response, next.jitter), (Bounds::Exact(100), Bounds::Exact(20)), "{does:?}");
    }
}

/// A sleep for another reason ends the unseen job.
#[test]
fn recognizes_job_after_sleep() {
    let condition = Kind::FutexEnter { word: 0x1000, operation: 128, value: 7 };
    for (does, then) in [(&[][..], &[][..]), (&[condition], &[Kind::FutexExit { result: 0 }])] {
        let jobs = found(&running(does, Sleeping, then), Config::default());
        assert_eq!((jobs[0].response, jobs[0].jitter), (Bounds::Exact(200), Bounds::Exact(10)), "{does:?}");
    }
}

/// If sleeps are parts of jobs, so is the first one.
#[test]
fn rest_of_job_with_sleeps_is_not_a_job() {
    let mut script = running(&[], Sleeping, &[]);
    script.waking(2_000, 0, HIGH, 0).switch(2_010, 0, Runnable, HIGH).switch(2_100, 0, SwitchOut::Gone, IDLE);
    let jobs = found(&script, Config { suspension: Suspension::IsCounted, ..Config::default() });
    assert_eq!(jobs.iter().map(|job| job.window).collect::<Vec<_>>(), [Bounds::AtLeast(1_790)]);
}
