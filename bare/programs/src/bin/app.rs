//! An app with a periodic task, messages in both directions, a lock, and a task bound to the UART's
//! interrupt.
#![no_std]
#![no_main]

#[punctual::app(report = "never")]
mod app {
    use punctual::prelude::*;
    use punctual_bare::{console, println};

    #[shared]
    struct Shared {
        sum: u32,
    }

    #[local]
    struct Local {
        round: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("init");
        first::spawn().expect("nothing else spawns it");
        println!("spawned in init, which it does not interrupt");
        (Shared { sum: 0 }, Local { round: 0 })
    }

    #[idle]
    fn idle(_: idle::Context) -> ! {
        println!("idle");
        loop {
            punctual::wait_for_event();
        }
    }

    #[task(priority = 1)]
    fn first(_: first::Context) {
        println!("first");
    }

    /// Runs every millisecond, on an absolute grid.
    #[task(priority = 2, period = 1.millis(), offset = 1.millis(), local = [round], shared = [sum])]
    fn sample(mut cx: sample::Context) {
        *cx.local.round += 1;
        let round = *cx.local.round;
        println!("sample {round}");
        cx.shared.sum.lock(|sum| {
            *sum += round;
            // The ceiling is the level of `high`, which runs on leaving the critical section.
            high::spawn(round).expect("it has run by the next round");
            println!("  in the lock");
        });
        println!("  after the lock");
        low::spawn(round).expect("it has run by the next round");
        if round == 3 {
            // Data was sent, so the interrupt is raised at once, and its task has a higher priority
            // than this one.
            console::interrupt_on_transmit(true);
        }
    }

    #[task(priority = 3, shared = [sum])]
    fn high(mut cx: high::Context, round: u32) {
        let sum = cx.shared.sum.lock(|sum| *sum);
        println!("  high {round}: {sum}");
    }

    #[task(priority = 1)]
    fn low(_: low::Context, round: u32) {
        println!("  low {round}");
        if round == 4 {
            println!("shutting down");
            punctual::shutdown();
        }
    }

    #[task(priority = 4, binds = UART0)]
    fn line(_: line::Context) {
        console::interrupt_on_transmit(false);
        println!("[sent]");
    }

    #[shutdown(shared = [sum])]
    fn shutdown(cx: shutdown::Context) {
        println!("shutdown: {}", cx.shared.sum);
    }
}
