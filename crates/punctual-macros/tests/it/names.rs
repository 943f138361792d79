//! The user's names are those of generated code as well, in every position.

#[punctual::app(main = false)]
mod app {
    use punctual::Duration;
    use punctual::prelude::*;

    const DURATION: Duration = Duration::from_millis(1);

    #[shared]
    struct Shared {
        worker: u32,
        level: u32,
        node: u32,
        shared: u32,
        local: u32,
        runtime: u32,
        idle: u32,
    }

    #[local]
    struct Local {
        state: u32,
        context: u32,
        kept: u32,
        release: u32,
        init: u32,
    }

    #[init(local = [worker: u32 = 1, context: u32 = 2, local: u32 = 3, shared: u32 = 4])]
    fn init(
        cx: init::Context,
        config: u32,
        init: u32,
        context: u32,
        worker: u32,
        run: &str,
        app: u32,
        runtime: u32,
    ) -> (Shared, Local) {
        let sum = *cx.local.worker + *cx.local.context + *cx.local.local + *cx.local.shared;
        assert_eq!(sum + config + init + context + worker + app + runtime, 16);
        assert_eq!(run, "run");
        worker::spawn(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).unwrap();
        release::spawn(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).unwrap();
        a::spawn().unwrap();
        a_b::spawn(1).unwrap();
        after_x::spawn().unwrap();
        x::spawn_after(DURATION, 1, DURATION).unwrap();
        let shared = Shared { worker: 1, level: 2, node: 3, shared: 4, local: 5, runtime: 6, idle: 7 };
        (shared, Local { state: 1, context: 2, kept: 3, release: 4, init: 5 })
    }

    #[idle(shared = [worker, idle], local = [state, kept, worker: u32 = 1, config: u32 = 2])]
    fn idle(cx: idle::Context) {
        *cx.local.state += *cx.local.kept + *cx.local.worker + *cx.local.config;
        (cx.shared.worker, cx.shared.idle).lock(|worker, idle| *worker += *idle);
    }

    #[task(priority = 2, shared = [worker, level, node, shared, local, runtime, idle], local = [context, release])]
    fn worker(
        mut cx: worker::Context,
        worker: u32,
        release: u32,
        args: u32,
        context: u32,
        state: u32,
        shared: u32,
        local: u32,
        config: u32,
        app: u32,
        function: u32,
    ) {
        assert_eq!(worker + release + args + context + state + shared + local + config + app + function, 55);
        assert_eq!(*cx.local.context + *cx.local.release, 6);
        cx.shared.worker.lock(|worker| *worker += 1);
        (cx.shared.level, cx.shared.node, cx.shared.shared, cx.shared.local, cx.shared.runtime).lock(
            |level, node, shared, local, runtime| {
                assert_eq!(*level + *node + *shared + *local + *runtime, 20)
            },
        );
    }

    #[task]
    fn release(
        _: release::Context,
        release: u32,
        after: u32,
        at: u32,
        me: u32,
        node: u32,
        now: u32,
        end: u32,
        runtime: u32,
        body: u32,
        level: u32,
    ) {
        assert_eq!(release + after + at + me + node + now + end + runtime + body + level, 55);
    }

    #[task(local = [b_c: u8 = 1])]
    fn a(cx: a::Context) {
        assert_eq!(*cx.local.b_c, 1);
    }

    #[task(local = [c: u32 = 2])]
    fn a_b(cx: a_b::Context, a_b: u32) {
        assert_eq!(*cx.local.c + a_b, 3);
    }

    #[task]
    fn after_x(_: after_x::Context) {}

    #[task(deadline = DURATION)]
    fn x(_: x::Context, x: u32, after: Duration) {
        assert_eq!((x, after), (1, DURATION));
        punctual::shutdown();
    }

    #[task(priority = 3, period = DURATION, local = [args: u32 = 0, worker: u32 = 0, end: u32 = 0])]
    fn end(cx: end::Context) {
        *cx.local.args += *cx.local.worker + *cx.local.end;
        assert!(cx.released <= punctual::now());
    }

    #[shutdown(shared = [worker, level], local = [context, init, worker: u32 = 1])]
    fn shutdown(cx: shutdown::Context) {
        *cx.shared.worker += *cx.local.worker + *cx.local.context + *cx.local.init + *cx.shared.level;
    }
}

#[test]
fn runs() {
    app::run(punctual::Config::from_env(), 1, 1, 1, 1, "run", 1, 1).unwrap();
}
