//! `offset` moves a grid, `period` may be a rate, and both may be constants.
//!
//! The grids of all tasks begin when `init` has ended: `even` is released at 0, 40, 80 ms, `odd` at
//! 20, 60, 100 ms. Both are of one level, so they run in the order of release even if the machine
//! stalls.

#[punctual::app]
mod app {
    use punctual::Duration;
    const OFFSET: Duration = Duration::from_millis(20);

    #[shared]
    struct Shared {
        #[lock_free]
        releases: Vec<(char, u64)>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { releases: Vec::with_capacity(6) }, Local {})
    }

    #[task(period = 25.Hz(), on_overrun = queue, capacity = 3, shared = [releases])]
    fn even(cx: even::Context) {
        println!("even");
        cx.shared.releases.push(('e', cx.released.as_ticks()));
    }

    #[task(period = 40.millis(), offset = OFFSET, on_overrun = queue, capacity = 3, shared = [releases])]
    fn odd(cx: odd::Context) {
        println!("odd");
        cx.shared.releases.push(('o', cx.released.as_ticks()));
        if cx.shared.releases.len() == 6 {
            punctual::shutdown();
        }
    }

    #[shutdown(shared = [releases])]
    fn shutdown(cx: shutdown::Context) {
        let start = cx.shared.releases[0].1;
        for (task, time) in cx.shared.releases {
            println!("{task} {} ms", (*time - start) / 1_000_000);
        }
    }
}
