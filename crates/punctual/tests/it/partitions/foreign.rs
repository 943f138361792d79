//! Foreign threads spawn into each of the app's parts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use punctual::report::Outcome;

use crate::partitions::{both, two_cpus};

/// Number of jobs for each part.
pub(crate) const JOBS: u32 = 2_000;

/// Number of jobs that each part has got so far.
pub(crate) static GOT: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Records a job, which has to be the next one of its part.
pub(crate) fn got(part: usize, number: u32) {
    assert_eq!(GOT[part].fetch_add(1, Ordering::Relaxed), number, "jobs of part {part} are in order");
    if GOT.iter().all(|got| got.load(Ordering::Relaxed) == JOBS) {
        punctual::shutdown();
    }
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            use super::got;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                (Shared {}, Local {})
            }

            #[task($($one)* priority = 1, capacity = 4)]
            fn first(_: first::Context, number: u32) {
                got(0, number);
            }

            #[task($($two)* priority = 2, capacity = 4)]
            fn second(_: second::Context, number: u32) {
                got(1, number);
            }
        }
    };
}

app!(parts, [partitions = [one, two]], [core = one,], [core = two,]);
app!(global, [executor = "global"], [], []);

/// Spawns them all, retrying each until there is room.
fn spawn(task: fn(u32) -> Result<(), punctual::SpawnError<u32>>) {
    let deadline = Instant::now() + Duration::from_secs(120);
    for number in 0..JOBS {
        let mut job = number;
        while let Err(back) = task(job) {
            assert!(Instant::now() < deadline, "there is no room for job {number}");
            job = back.into_inner();
            assert_eq!(job, number, "the argument comes back");
            std::thread::yield_now();
        }
    }
}

macro_rules! runs {
    ($name:ident) => {
        let _alone = crate::alone();
        GOT.iter().for_each(|got| got.store(0, Ordering::Relaxed));
        let [real, _] = both();
        std::thread::scope(|scope| {
            scope.spawn(|| spawn($name::first::spawn));
            scope.spawn(|| spawn($name::second::spawn));
            let report = $name::run(real).expect("the app starts");
            assert_eq!((&report.outcome, report.dropped_jobs), (&Outcome::Shutdown, 0), "{report}");
        });
        assert_eq!($name::first::spawn(7), Err(punctual::SpawnError::Stopping(7)), "the app has ended");
    };
}

#[test]
fn into_both_partitions() {
    if two_cpus().is_some() {
        runs!(parts);
    }
}

#[test]
fn spawns_into_two_levels_of_global_executor() {
    runs!(global);
}
