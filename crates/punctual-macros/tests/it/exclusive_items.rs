//! Mutually exclusive `#[cfg]`s select between items of any kind: simulation and hardware in one
//! app.

#[punctual::app(partitions = [control, io])]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        #[cfg(unix)]
        port: u32,
        #[cfg(not(unix))]
        port: [Missing; 7],
        #[cfg_attr(unix, lock_free)]
        count: u32,
    }

    #[cfg(unix)]
    #[local]
    struct Local {
        steps: u32,
        #[cfg(unix)]
        line: u8,
        #[cfg(not(unix))]
        line: Missing,
    }

    #[cfg(not(unix))]
    #[local]
    struct Local {}

    #[cfg(not(unix))]
    const LEVEL: u8 = 200;
    #[cfg(unix)]
    const LEVEL: u8 = 3;

    #[cfg_attr(unix, init)]
    fn simulated(_: simulated::Context) -> (Shared, Local) {
        step::spawn(0).unwrap();
        (Shared { port: 1, count: 0 }, Local { steps: 0, line: 1 })
    }

    #[cfg(not(unix))]
    #[init]
    fn hardware(_: hardware::Context) -> (Shared, Local) {}

    #[cfg(unix)]
    #[idle(local = [#[cfg(unix)] line, #[cfg(not(unix))] missing])]
    fn idle(cx: idle::Context) {
        *cx.local.line += 1;
    }

    #[cfg(not(unix))]
    #[idle]
    fn sleep(_: sleep::Context) {}

    #[cfg_attr(unix, task(
        priority = LEVEL,
        capacity = 2,
        shared = [#[cfg(unix)] port, #[cfg(not(unix))] &port, count],
        local = [steps],
    ))]
    #[cfg_attr(not(unix), task(binds = line, local = [line]))]
    fn step(mut cx: step::Context, #[cfg(unix)] by: u32, #[cfg(not(unix))] by: Missing) {
        *cx.local.steps += by + 1;
        *cx.shared.count += 1;
        if cx.shared.port.lock(|port| *port + *cx.local.steps) == 4 {
            return punctual::shutdown();
        }
        later();
    }

    #[cfg(not(unix))]
    #[task(core = io, local = [steps])]
    fn only_on_hardware(_: only_on_hardware::Context) {}

    #[cfg_attr(not(unix), task)]
    fn later() {
        step::spawn_after(1.millis(), 1).unwrap();
    }

    #[cfg(unix)]
    #[shutdown(shared = [#[cfg(all())] #[cfg(unix)] &count])]
    fn shutdown(cx: shutdown::Context) {
        assert_eq!(*cx.shared.count, 2);
    }

    #[cfg(not(unix))]
    #[shutdown]
    fn shutdown(_: shutdown::Context, _: u8) {}
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
