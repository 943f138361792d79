#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        /// Used by two tasks and `idle`.
        total: u32,
        #[lock_free]
        history: Vec<u32>,
        limits: [u32; 2],
        #[cfg(unix)]
        unix: u32,
        #[cfg(not(unix))]
        other: NoSuchType,
        unused: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        let history = Vec::with_capacity(8);
        (
            Shared {
                total: 0,
                history,
                limits: [1, 9],
                #[cfg(unix)]
                unix: 0,
                unused: 0,
            },
            Local {},
        )
    }

    #[idle(shared = [total])]
    fn idle(mut cx: idle::Context) {
        cx.shared.total.lock(|total| *total += 1);
    }

    #[task(shared = [total, history, &limits, #[cfg(unix)] unix, #[cfg(not(unix))] other])]
    fn low(mut cx: low::Context) {
        cx.shared.history.push(cx.shared.limits[0]);
        let seen = cx.shared.total.lock(|total| {
            *total += 1;
            high::spawn().unwrap();
            *total
        });
        assert!(seen >= 1);
        (cx.shared.total, cx.shared.unix).lock(|total, unix| *unix = *total);
        same::spawn().unwrap();
    }

    #[task(shared = [history])]
    fn same(same::Context { shared, .. }: same::Context) {
        assert_eq!(shared.history.len(), 1);
        punctual::shutdown();
    }

    #[task(priority = 3, shared = [total, &limits, #[cfg(unix)] unix])]
    fn high(mut cx: high::Context) {
        let limit = cx.shared.limits[1];
        cx.shared.total.lock(|total| *total += limit);
        #[cfg(unix)]
        cx.shared.unix.lock(|unix| *unix += 1);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
