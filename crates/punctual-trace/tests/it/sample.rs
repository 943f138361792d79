//! In addition to the worst jobs, some ordinary ones are captured, evenly spaced over the whole
//! recording.

use crate::support::{IDLE, Script, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::jobs::Config;
use punctual_trace::stats::Watch;

fn watched(jobs: u64, sample: usize) -> Watch {
    let mut script = Script::new();
    let thread = task(7, 10);
    for job in 0..jobs {
        let t = 1_000_000 * (job + 1);
        script.waking(t, 0, thread, 0).switch(t + 1_000, 0, Runnable, thread);
        script.switch(t + 9_000 + job % 13, 0, Sleeping, IDLE);
    }
    let mut watch = Watch::new(Config { segments: true, ..Config::default() }, 2);
    watch.sample(sample);
    script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    watch
}

#[test]
fn spreads_sample_evenly_over_jobs() {
    for jobs in [1, 5, 8, 9, 100, 5_000] {
        let watch = watched(jobs, 8);
        let sample = watch.tasks()[0].sampled();
        let count = sample.len() as u64;
        assert!(count <= 8 && count >= jobs.min(4), "{count} of {jobs}");
        let ends: Vec<u64> = sample.iter().map(|captured| captured.job.end / 1_000_000).collect();
        let apart: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(ends[0], 1, "the first job is in it");
        assert!(apart.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}");
        // Until the next one would be in it.
        assert!(
            jobs - ends[ends.len() - 1] < apart.first().copied().unwrap_or(1).max(1),
            "{ends:?} of {jobs}"
        );
        assert!(sample.iter().all(|captured| captured.events.len() >= 3 && !captured.truncated));
    }
}

#[test]
fn keeps_no_sample_unless_asked() {
    assert!(watched(100, 0).tasks()[0].sampled().is_empty());
}
