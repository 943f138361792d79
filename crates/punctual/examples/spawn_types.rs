//! The types of everything that releases a job, written out.
//!
//! An error contains the arguments, returned by `into_inner`: none, one, or a tuple. Nothing is
//! left waiting in the end, so `idle` starts as soon as the spawned jobs have run, in the order of
//! their release.

#[punctual::app]
mod app {
    use punctual::prelude::*;
    use punctual::{Duration, Instant, SpawnError, TooLate};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let _: Result<(), SpawnError<()>> = none::spawn();
        let _: Result<(), SpawnError<u32>> = one::spawn(1);
        let _: Result<(), SpawnError<(u32, char)>> = two::spawn(2, 'b');

        let delay: Duration = 10.secs();
        let time: Instant = punctual::now() + delay;
        let armed: Result<none::SpawnHandle, SpawnError<()>> = none::spawn_after(delay);
        let _: Result<(), TooLate> = armed.unwrap().cancel();
        let armed: Result<one::SpawnHandle, SpawnError<u32>> = one::spawn_after(delay, 1);
        let _: Result<u32, TooLate> = armed.unwrap().cancel();
        let armed: Result<two::SpawnHandle, SpawnError<(u32, char)>> = two::spawn_at(time, 2, 'c');
        let moved: Result<two::SpawnHandle, TooLate> = armed.unwrap().reschedule_after(2 * delay);
        let moved: Result<two::SpawnHandle, TooLate> = moved.unwrap().reschedule_at(time + delay);
        let args: Result<(u32, char), TooLate> = moved.unwrap().cancel();
        println!("cancelled: {args:?}");
        (Shared {}, Local {})
    }

    #[idle]
    fn idle(_: idle::Context) {
        println!("idle");
        punctual::shutdown();
    }

    #[task(capacity = 2)]
    fn none(_: none::Context) {
        println!("none");
    }

    #[task(capacity = 2)]
    fn one(_: one::Context, a: u32) {
        println!("one {a}");
    }

    #[task(capacity = 2)]
    fn two(_: two::Context, a: u32, b: char) {
        println!("two {a} {b}");
    }
}
