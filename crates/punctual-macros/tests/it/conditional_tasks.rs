#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        total: u32,
    }

    #[local]
    struct Local {
        #[cfg(not(unix))]
        absent: NoSuchType,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        #[cfg(unix)]
        present::spawn().unwrap();
        (Shared { total: 0 }, Local {})
    }

    /// Documented.
    #[cfg(unix)]
    #[task(shared = [total])]
    #[inline(never)]
    fn present(mut cx: present::Context) {
        cx.shared.total.lock(|total| *total += 1);
        punctual::shutdown();
    }

    #[cfg(not(unix))]
    #[task(priority = 5, period = 1.millis(), shared = [total], local = [absent])]
    fn absent(_: absent::Context) {}
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
