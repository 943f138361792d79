//! Default choice of blocking futex waits: those on apparent locks.

use crate::support::{IDLE, Script, of, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Kind, Task};
use punctual_trace::explain;
use punctual_trace::jobs::{Bounds, Config, FutexRole, FutexWaits};
use punctual_trace::stats::Watch;

const WORKER: Task = task(7, 10);
const OTHER: Task = task(9, 30);
const MS: u64 = 1_000_000;
const EXIT: Kind = Kind::FutexExit { result: 0 };

fn wait(word: u64, value: u32) -> Kind {
    Kind::FutexEnter { word, operation: 9 | 128, value }
}

/// A worker gets work through a condition variable ten times a second, and once contends for a
/// mutex.
fn worker() -> Script {
    let mut s = Script::new();
    for job in 1..6 {
        let t = job * 100 * MS;
        s.waking(t, 0, WORKER, 0).switch(t + 10, 0, Runnable, WORKER).at(t + 20, 0, EXIT);
        if job == 3 {
            s.at(t + MS, 0, wait(0x2000, 2)).switch(t + MS + 100, 0, Sleeping, OTHER);
            s.waking(t + 3 * MS, 0, WORKER, 0).switch(t + 3 * MS + 10, 0, Runnable, WORKER);
            s.at(t + 3 * MS + 20, 0, EXIT);
        }
        s.at(t + 4 * MS, 0, wait(0x1000, job as u32)).switch(t + 4 * MS + 100, 0, Sleeping, IDLE);
    }
    s
}

#[test]
fn ends_job_where_worker_waits_for_next_one() {
    let jobs = worker().jobs(Config::default());
    let found = of(&jobs, 7);
    // The first wake-up may have been the end of a wait, and so may the next one.
    assert_eq!(found.len(), 5);
    for (index, job) in found.iter().enumerate().skip(2) {
        assert_eq!((job.flaw, job.response), (None, Bounds::Exact(4 * MS + 100)), "{index}");
        // The counter of a condition variable passes through the value of a contended mutex.
        assert_eq!(job.ended_on, Some((0x1000, FutexRole::LikelyCondition)), "{index}");
    }
    assert_eq!(found[2].blocking, Bounds::Exact(2 * MS + 20));
    assert_eq!(found[2].blockings[0].role, Some(FutexRole::LikelyLock));
    // Taken for a lock, all of it is one job.
    let jobs = worker().jobs(Config { futex: FutexWaits::Block, ..Config::default() });
    assert!(of(&jobs, 7).is_empty());
}

#[test]
fn reports_assumption_and_its_option() {
    let assumed = |futex| {
        let mut watch = Watch::new(Config { futex, ..Config::default() }, 1);
        let mut script = worker();
        script.waking(700 * MS, 0, WORKER, 0).switch(700 * MS + 10, 0, Runnable, WORKER);
        script.at(700 * MS + 20, 0, EXIT).switch(701 * MS, 0, Sleeping, IDLE);
        // The first job has no recorded start, and the blocking has to be in one that counts.
        script.events.drain(..3);
        script.waking(800 * MS, 0, WORKER, 0).switch(800 * MS + 10, 0, Runnable, WORKER);
        script.at(800 * MS + 20, 0, wait(0x1000, 7)).switch(800 * MS + 30, 0, Sleeping, IDLE);
        script.waking(900 * MS, 0, WORKER, 0).switch(900 * MS + 10, 0, Runnable, WORKER);
        script.at(900 * MS + 20, 0, EXIT).switch(901 * MS, 0, Sleeping, IDLE);
        script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        watch.tasks().first().map(explain::assumptions).unwrap_or_default().join("\n")
    };
    let judged = assumed(FutexWaits::Judged);
    assert!(judged.contains("taken for a condition") && judged.contains("--futex block"), "{judged}");
    assert!(judged.contains("1 wait on a futex whose word is that of a contended mutex"), "{judged}");
    let block = assumed(FutexWaits::Block);
    assert!(block.contains("looks like a condition") && block.contains("--futex auto"), "{block}");
}
