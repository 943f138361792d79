//! Async tasks: a delay never ends early and hardly late, an interrupt wakes a task, polls preempt
//! polls, and tasks that still wait at the end are dropped.
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never")]
mod app {
    use core::future::Future;
    use core::future::{pending, poll_fn};
    use core::hint::black_box;
    use core::pin::pin;

    use punctual::Instant;
    use punctual::prelude::*;
    use punctual::sync::asynch::signal::{Signal, SignalReader, SignalWriter};
    use punctual_bare::{console, println};

    static LINE: Signal<u32> = Signal::new();

    #[shared]
    struct Shared {
        polls: u32,
    }

    #[local]
    struct Local {
        line: SignalWriter<'static, u32>,
        interrupts: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, reader) = LINE.split().expect("this is the first call");
        computes::spawn().expect("there is none");
        ticks::spawn().expect("there is none");
        waits::spawn(reader).expect("there is none");
        stays::spawn().expect("there is none");
        (Shared { polls: 0 }, Local { line, interrupts: 0 })
    }

    /// Waits, and uses registers of the FPU between its waits, so that its polls are interrupted.
    #[task(priority = 1, shared = [polls])]
    async fn computes(mut cx: computes::Context) {
        for round in 1..=3 {
            let mut values = [f64::from(round); 12];
            let begin = punctual::now();
            while punctual::now() < begin + 2500.micros() {
                values.iter_mut().for_each(|value| *value = black_box(*value * 1.5 / 1.5));
            }
            assert!(values.iter().all(|value| *value == f64::from(round)), "the FPU is as it was left");
            // Stays in the timers of this level, although polls of another level have intervened.
            punctual::delay(100.micros()).await;
            let polls = cx.shared.polls.lock(|polls| *polls);
            println!("computed {round}, after {polls} polls of ticks");
        }
        // Data was sent, so the interrupt is raised at once.
        console::interrupt_on_transmit(true);
    }

    /// Runs every millisecond.
    #[task(priority = 2, shared = [polls])]
    async fn ticks(mut cx: ticks::Context) {
        let mut next = punctual::now();
        let mut latest = 0;
        for _ in 0..7 {
            next += 1.millis();
            punctual::delay_until(next).await;
            let now = punctual::now();
            assert!(now >= next, "early");
            latest = latest.max(now.as_ticks() - next.as_ticks());
            cx.shared.polls.lock(|polls| *polls += 1);
        }
        println!("ticks: late by {latest} ns");
    }

    /// Has a higher priority than `waits`: the wake in its job polls the reader after the
    /// interrupt.
    #[task(priority = 4, binds = UART0, local = [line, interrupts])]
    fn line(cx: line::Context) {
        console::interrupt_on_transmit(false);
        *cx.local.interrupts += 1;
        println!("interrupt {}", cx.local.interrupts);
        cx.local.line.write(*cx.local.interrupts);
        println!("  written");
    }

    #[task(priority = 3)]
    async fn waits(_: waits::Context, mut line: SignalReader<'static, u32>) {
        for _ in 0..2 {
            let number = line.wait().await;
            println!("  read {number}");
            console::interrupt_on_transmit(number < 2);
        }
        assert_eq!(punctual::timeout_after(1.millis(), line.wait()).await, Err(punctual::TimeoutError));
        println!("nothing more comes in 1 ms");
        punctual::shutdown();
    }

    /// Never completes. It is dropped when no job can run any longer, and may then use its
    /// resources.
    #[task(priority = 1, shared = [polls])]
    async fn stays(cx: stays::Context) {
        struct Left<M: Mutex<T = u32>>(M);

        impl<M: Mutex<T = u32>> Drop for Left<M> {
            fn drop(&mut self) {
                self.0.lock(|polls| println!("dropped at the end, {polls} polls seen"));
            }
        }

        let _left = Left(cx.shared.polls);
        let mut never = pin!(pending::<Instant>());
        poll_fn(|context| never.as_mut().poll(context)).await;
    }
}
