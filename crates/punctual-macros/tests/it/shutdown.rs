#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
        table: [u32; 2],
        #[lock_free]
        free: u32,
    }

    #[local]
    struct Local {
        sensor: u32,
        of_shutdown: String,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        work::spawn().unwrap();
        let local = Local { sensor: 1, of_shutdown: String::new() };
        (Shared { total: 0, table: [1, 2], free: 0 }, local)
    }

    #[task(priority = 2, shared = [total, &table, free], local = [sensor])]
    fn work(mut cx: work::Context) {
        *cx.local.sensor += cx.shared.table[0];
        *cx.shared.free += 1;
        cx.shared.total.lock(|total| *total += 1);
        punctual::shutdown();
    }

    #[shutdown(shared = [total, &table, free], local = [sensor, of_shutdown, calls: u32 = 0])]
    fn shutdown(cx: shutdown::Context) {
        *cx.local.calls += 1;
        cx.local.of_shutdown.push('x');
        assert_eq!((*cx.local.sensor, *cx.local.calls), (2, 1));
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
