//! The three worked jobs of section 6 of source 004: the results equal the published numbers, to
//! the nanosecond.

use crate::support::{of, worked};
use punctual_trace::jobs::{Actor, Bounds, Config, HolderState, Job, WaitTarget};

/// R, J, SS on entry and exit, SS, W, B, I, C.
fn terms(job: &Job) -> [Bounds; 9] {
    [
        job.response,
        job.jitter,
        job.overhead_entry,
        job.overhead_exit,
        job.overhead,
        job.window,
        job.blocking,
        job.interference,
        job.execution,
    ]
}

#[test]
fn matches_paper_for_activation_without_concurrence() {
    let trace = worked::activation_without_concurrence();
    let jobs = trace.jobs(Config::default());
    assert_eq!(jobs.len(), 1);
    let expected = [100_149, 21_864, 4_124, 10_654, 14_778, 78_285, 0, 0, 63_507];
    assert_eq!(terms(&jobs[0]), expected.map(Bounds::Exact));
    assert!(jobs[0].complete());
}

fn concurrent_activation() -> Vec<Job> {
    worked::concurrent_activation().jobs(Config { segments: true, ..Config::default() })
}

#[test]
fn matches_paper_for_concurrent_activation_of_low_task() {
    let jobs = concurrent_activation();
    let low = of(&jobs, 838);
    assert_eq!(low.len(), 1);
    let expected = [365_626, 63_586, 6_565, 15_399, 21_964, 302_040, 0, 0, 280_076];
    assert_eq!(terms(low[0]), expected.map(Bounds::Exact));
    assert_eq!((low[0].priority, low[0].highest), (60, 50));
}

#[test]
fn matches_paper_for_concurrent_activation_of_high_task() {
    let jobs = concurrent_activation();
    let high = of(&jobs, 839);
    assert_eq!(high.len(), 1);
    let expected = [448_573, 64_574, 6_068, 15_449, 21_517, 383_999, 178_545, 0, 183_937];
    assert_eq!(terms(high[0]), expected.map(Bounds::Exact));
    assert_eq!(high[0].migrations, 1);

    let wait = &high[0].blockings[0];
    assert_eq!(wait.target, WaitTarget::Lock { address: 0xffff_8800_1234, flags: 8 });
    assert_eq!(wait.owners, [838]);
    assert_eq!(wait.waker, Some(Actor::Thread(838)));
    let shares: Vec<_> = wait.shares.iter().map(|share| (share.state, share.ns)).collect();
    assert_eq!(shares, [(HolderState::Running, 100_000), (HolderState::Granted, 78_545)]);
    assert_eq!(high[0].segments.iter().map(|s| s.end - s.start).sum::<u64>(), 448_573);
}
