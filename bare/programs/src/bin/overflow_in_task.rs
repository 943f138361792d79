//! Overflows the stack of the second core in a job that has preempted another. The message names
//! the level.
//!
//! exit: 101
//! emulator: -smp 4
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never", partitions = [first, second])]
mod app {
    use core::hint::black_box;

    use punctual_bare::println;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().expect("nothing else spawns it");
        (Shared {}, Local {})
    }

    #[task(priority = 2, core = second)]
    fn low(_: low::Context) {
        println!("low spawns high");
        high::spawn().expect("nothing else spawns it");
        println!("not reached");
    }

    #[task(priority = 5, core = second)]
    fn high(_: high::Context) {
        println!("{}", descend(1));
    }

    #[inline(never)]
    fn descend(depth: u64) -> u64 {
        let frame = black_box([depth; 64]);
        if depth == 0 { 0 } else { descend(depth + 1) + black_box(frame)[63] }
    }

    /// The partition requires a task.
    #[task(priority = 1, core = first)]
    fn other(_: other::Context) {}
}
