//! Partitions: tasks that are configured out, CPUs given by constant expressions, and names that
//! are already taken.

#[punctual::app(main = false, executor = "partition", partitions = [
    part,
    idle(cpu = BASE + 1),
    main(cpu = if cfg!(unix) { table::CPUS[2] } else { 9 }),
    runtime,
    r#loop,
])]
mod app {
    use super::table;
    use punctual::prelude::*;

    const BASE: usize = 0;

    #[shared]
    struct Shared {
        /// In all of them.
        part: u32,
        main: u32,
        #[lock_free]
        idle: u32,
        r#loop: &'static str,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        part::spawn().unwrap();
        (Shared { part: 0, main: 0, idle: 0, r#loop: "loop" }, Local {})
    }

    #[idle(shared = [part])]
    fn idle(mut cx: idle::Context) {
        cx.shared.part.lock(|part| *part += 1);
    }

    /// In the first partition, by default.
    #[task(shared = [part, main, idle])]
    fn part(cx: part::Context) {
        *cx.shared.idle += 1;
        (cx.shared.part, cx.shared.main).lock(|part, main| {
            *part += 1;
            *main += 1;
        });
        cpu::spawn().unwrap();
    }

    #[task(core = part, shared = [idle])]
    fn again(cx: again::Context) {
        *cx.shared.idle += 1;
    }

    #[task(core = idle, priority = 2, shared = [part, main, &r#loop])]
    fn cpu(mut cx: cpu::Context) {
        assert_eq!(*cx.shared.r#loop, "loop");
        cx.shared.main.lock(|main| cx.shared.part.lock(|part| (*main, *part) = (*main + 1, *part + 1)));
        worker::spawn(1).unwrap();
    }

    #[task(core = main, capacity = 2, shared = [&r#loop])]
    fn worker(cx: worker::Context, core: u8) {
        assert_eq!((*cx.shared.r#loop, core), ("loop", 1));
        r#loop::spawn().unwrap();
    }

    /// The only task of its partition, which stays.
    #[cfg(not(unix))]
    #[task(core = runtime, shared = [part], deadline = no_such_deadline)]
    fn runtime(_: runtime::Context) {}

    #[cfg(unix)]
    #[task(core = runtime, period = 1.millis(), local = [ticks: u32 = 0])]
    fn ticks(cx: ticks::Context) {
        *cx.local.ticks += 1;
        if *cx.local.ticks == 3 {
            again::spawn().unwrap();
            punctual::shutdown();
        }
    }

    #[task(core = r#loop, priority = 28, shared = [part])]
    async fn r#loop(mut cx: r#loop::Context) {
        punctual::delay(1.millis()).await;
        cx.shared.part.lock(|part| *part += 1);
    }

    #[shutdown(shared = [part, main, idle])]
    fn shutdown(cx: shutdown::Context) {
        assert_eq!((*cx.shared.part, *cx.shared.main, *cx.shared.idle), (4, 2, 2));
    }
}

mod table {
    pub(crate) const CPUS: [usize; 3] = [0, 1, 2];
}

#[test]
fn runs() {
    let config = punctual::Config::new().virtual_time();
    assert_eq!(app::run(config).unwrap().exit_code(), 0);
}
