//! The global executor: every kind of task and of sharing, and names that are already taken.

#[punctual::app(main = false, executor = "global")]
mod app {
    use std::os::unix::net::UnixStream;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        ceilings: u32,
        mutex: u32,
        /// Used at one level.
        #[lock_free]
        part: u32,
        table: [u8; 2],
        /// Unused.
        spare: u32,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        level::spawn(1).unwrap();
        let (line, other_end) = UnixStream::pair().unwrap();
        let shared = Shared { ceilings: 0, mutex: 0, part: 0, table: [1, 2], spare: 0 };
        (shared, Local { line, other_end })
    }

    #[idle(shared = [ceilings])]
    fn idle(mut cx: idle::Context) {
        cx.shared.ceilings.lock(|ceilings| *ceilings += 1);
    }

    #[task(priority = 3, shared = [ceilings, part, &table])]
    fn level(mut cx: level::Context, number: u32) {
        assert_eq!((cx.shared.table, number), (&[1, 2], 1));
        *cx.shared.part += 1;
        cx.shared.ceilings.lock(|ceilings| *ceilings += 1);
        member::spawn().unwrap();
    }

    #[cfg(not(unix))]
    #[task(priority = 28, shared = [ceilings])]
    fn absent(_: absent::Context) {}

    #[task(priority = 3, shared = [mutex])]
    async fn member(mut cx: member::Context) {
        punctual::delay(1.millis()).await;
        cx.shared.mutex.lock(|mutex| *mutex += 1);
        thread::pend();
    }

    #[task(binds = line, priority = 1, local = [line, other_end], shared = [mutex, ceilings, &table])]
    fn thread(cx: thread::Context) {
        (cx.shared.mutex, cx.shared.ceilings).lock(|mutex, ceilings| {
            *mutex += 1;
            *ceilings += 1;
        });
    }

    #[task(priority = 2, period = 10.millis(), shared = [ceilings])]
    fn ticks(mut cx: ticks::Context) {
        cx.shared.ceilings.lock(|ceilings| {
            if *ceilings >= 3 {
                punctual::shutdown();
            }
        });
    }

    #[shutdown(shared = [ceilings, mutex, part, &table])]
    fn shutdown(cx: shutdown::Context) {
        assert_eq!((*cx.shared.ceilings, *cx.shared.mutex, *cx.shared.part), (3, 2, 1));
    }
}

#[test]
fn runs() {
    let config = punctual::Config::new().virtual_time();
    assert_eq!(app::run(config).unwrap().exit_code(), 0);
}
