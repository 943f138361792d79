//! One static buffer moves back and forth between two tasks: its holder may use it, so no lock is
//! needed.
//!
//! `read` is above `write` and runs at the spawn, nested in it. The job that `read` spawns is below
//! it and waits until the first `write` has ended.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init(local = [buffer: [u32; 4] = [0; 4]])]
    fn init(cx: init::Context) -> (Shared, Local) {
        write::spawn(1, cx.local.buffer).unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn write(_: write::Context, round: u32, buffer: &'static mut [u32; 4]) {
        println!("round {round} starts");
        buffer.iter_mut().for_each(|value| *value += round);
        read::spawn(round, buffer).unwrap();
        println!("round {round} ends");
    }

    #[task(priority = 2)]
    fn read(_: read::Context, round: u32, buffer: &'static mut [u32; 4]) {
        println!("  {buffer:?}");
        if round < 3 {
            write::spawn(round + 1, buffer).unwrap();
        } else {
            punctual::shutdown();
        }
    }
}
