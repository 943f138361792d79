//! Jobs released by timers, among many other timers.

use crate::support::{IDLE, Script, task};
use punctual_trace::event::{Kind, SwitchOut};
use punctual_trace::jobs::{Bounds, Config, Decomposer, ReleasedBy, Select};

const JOBS: u64 = 1_000;
/// A timer on the stack of the thread, and those of other sleeping threads.
const OWN: u64 = 0xffff_c900_0000_3e48;

fn other(n: u64) -> u64 {
    OWN + (1 + n) * 0x4000
}

/// A thread that sleeps until each millisecond, while `others` other threads sleep as often.
fn scene(others: u64) -> Script {
    let thread = task(7, 10);
    let mut s = Script::new();
    (0..others).for_each(|n| _ = s.at(1, 1, Kind::TimerStart { timer: other(n), expires: 1 << 40 }));
    for job in 1..=JOBS {
        let due = 1_000_000 * job;
        s.at(due - 900_000, 0, Kind::TimerStart { timer: OWN, expires: due });
        for n in (job - 1..others).step_by(JOBS as usize) {
            s.at(due - 500_000, 1, Kind::TimerStart { timer: other(n), expires: 1 << 41 });
        }
        s.at(due + 300, 0, Kind::VectorEntry { vector: 236 });
        s.at(due + 400, 0, Kind::TimerExpire { timer: OWN, now: due + 350 });
        s.waking(due + 500, 0, thread, 0).at(due + 600, 0, Kind::TimerExpired { timer: OWN });
        s.at(due + 700, 0, Kind::VectorExit { vector: 236 });
        s.switch(due + 1_000, 0, SwitchOut::Runnable, thread);
        s.switch(due + 5_000, 0, SwitchOut::Sleeping, IDLE);
    }
    s
}

#[test]
fn finds_every_release_among_100000_timers() {
    let scene = scene(100_000);
    let mut decomposer = Decomposer::new(Config { monotonic: true, ..Config::default() });
    let mut jobs = 0;
    for event in &scene.events {
        decomposer.feed(event, &mut |job| {
            jobs += 1;
            assert_eq!((job.released_by, job.jitter), (ReleasedBy::Timer, Bounds::Exact(1_000)), "{jobs}");
        });
    }
    assert_eq!((jobs, decomposer.counters().unknown_timers), (JOBS, 0));
}

#[test]
fn counts_timers_without_observed_start() {
    let mut scene = scene(0);
    let mut starts = 0;
    scene.events.retain(|event| {
        starts += u64::from(matches!(event.kind, Kind::TimerStart { .. }));
        !matches!(event.kind, Kind::TimerStart { .. }) || starts % 10 != 0
    });
    let mut decomposer = Decomposer::new(Config { monotonic: true, ..Config::default() });
    let mut timed = 0;
    for event in &scene.events {
        decomposer.feed(event, &mut |job| timed += u64::from(job.released_by == ReleasedBy::Timer));
    }
    assert_eq!((timed, decomposer.counters().unknown_timers), (JOBS - JOBS / 10, JOBS / 10));
}

/// The kernel lets timers with slack expire before it is used up, together with others. The
/// interrupt reads its clock once for all.
#[test]
fn timer_within_slack_is_due() {
    let thread = task(7, 120);
    let mut s = Script::new();
    s.at(1_000, 0, Kind::TimerStart { timer: OWN, expires: 150_000 });
    s.at(100_000, 0, Kind::VectorEntry { vector: 236 });
    // Others expired before.
    s.at(115_000, 0, Kind::TimerExpire { timer: OWN, now: 100_700 });
    s.waking(115_500, 0, thread, 0).at(116_000, 0, Kind::TimerExpired { timer: OWN });
    s.at(117_000, 0, Kind::VectorExit { vector: 236 });
    s.switch(118_000, 0, SwitchOut::Runnable, thread).switch(120_000, 0, SwitchOut::Sleeping, IDLE);
    let jobs = s.jobs(Config { monotonic: true, select: Select::thread(7), ..Config::default() });
    assert_eq!((jobs[0].released, jobs[0].jitter), (Some((100_700, 100_700)), Bounds::Exact(17_300)));
}
