//! Times of spawns within a job, and the spawners.

use punctual::{Config, Duration};

use crate::profile::{File, assert_has};

#[punctual::app(main = false, profile)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        data: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { data: 0 }, Local {})
    }

    #[task(priority = 4, period = 1.secs(), offset = 1.millis())]
    fn preempts(_: preempts::Context) {
        punctual::spend(4.millis());
    }

    #[task(priority = 3)]
    fn called(_: called::Context) {
        punctual::spend(2.millis());
    }

    #[task(priority = 2, period = 20.millis(), local = [jobs: u64 = 0])]
    fn caller(cx: caller::Context) {
        *cx.local.jobs += 1;
        punctual::spend((2 + *cx.local.jobs).millis());
        called::spawn().unwrap();
        left::spawn().unwrap();
        let _ = later::spawn_after(1.millis());
    }

    #[task(priority = 2, period = 20.millis(), offset = 10.millis(), shared = [data], local = [jobs: u64 = 0])]
    fn either(mut cx: either::Context) {
        *cx.local.jobs += 1;
        match cx.local.jobs.is_multiple_of(2) {
            true => cx.shared.data.lock(|_| left::spawn().unwrap()),
            false => called::spawn().unwrap(),
        }
    }

    #[task(priority = 1, shared = [data])]
    fn left(mut cx: left::Context) {
        cx.shared.data.lock(|_| ());
    }

    #[task(priority = 1)]
    fn later(_: later::Context) {}
}

#[test]
fn measures_earliest_spawn_without_other_jobs() {
    let file = File::new("spawns");
    let config = Config::new().virtual_time().until(Duration::from_millis(70)).profile(file.path());
    app::run(config).unwrap();
    // 3 ms in the first job of `caller`, which is preempted, and calls another. Called jobs may
    // occur at any time.
    let spawns = [
        "{ \"task\": \"called\", \"most_per_job\": 1, \"earliest_ns\": 0, \"in_section\": false }",
        "{ \"task\": \"left\", \"most_per_job\": 1, \"earliest_ns\": 3000000, \"in_section\": false }",
        "\"spawns_most_per_job\": 2",
    ];
    assert_has(&file.task("caller"), &spawns);
    // One of the two, which is spawned while a resource is held.
    let spawns = [
        "{ \"task\": \"called\", \"most_per_job\": 1, \"earliest_ns\": 0, \"in_section\": false }",
        "{ \"task\": \"left\", \"most_per_job\": 1, \"earliest_ns\": 0, \"in_section\": true }",
        "\"spawns_most_per_job\": 1",
    ];
    assert_has(&file.task("either"), &spawns);
    assert_has(&file.task("left"), &["\"spawned_by_no_job\": 0"]);
    // Its jobs are released by the clock.
    assert_has(&file.task("later"), &["\"spawned_by_no_job\": 4"]);
}
