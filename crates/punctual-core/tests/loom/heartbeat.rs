//! Heartbeats: a reader of the running job sees all of one job, or none.
//!
//! Bound: three preemptions; the merge gate explores two. Parts of two jobs are read if the writer
//! is stopped in one job, the reader between two of its reads, and the writer again in the next
//! job. The last stop is needed only for a job that is partly written.

use crate::support::{Arena, Started, check, start};
use punctual_core::heartbeat::{Beat, Running};

/// The `number`th job of a level. Every field identifies it.
fn job(number: u64) -> Running {
    let name = u32::try_from(number).expect("small numbers");
    Running {
        task: name,
        thread: name,
        since: number * 10,
        executed: number,
        number,
        cpu: Some(number),
        called: 0,
    }
}

/// The level's thread runs `jobs`, the last of which does not end.
fn runs(arena: &Arena, jobs: u64) -> (&'static Beat, Started) {
    let beat: &Beat = arena.put(Beat::default());
    let writer = start(1, move || {
        for number in 1..=jobs {
            let Running { task, thread, since, executed, cpu, .. } = job(number);
            beat.begin(task, thread, since, executed, cpu);
            if number < jobs {
                beat.end(number + 1);
            }
        }
    });
    (beat, writer)
}

/// A second thread reads once, while two jobs run.
#[test]
fn reads_job_consistently() {
    check(3, |arena| {
        let (beat, writer) = runs(arena, 2);
        let reader = start(2, move || {
            if let Some(seen) = beat.running() {
                assert_eq!(seen, job(seen.number), "parts of two jobs");
            }
        });
        reader.join().unwrap();
        writer.join().unwrap();
    });
}
