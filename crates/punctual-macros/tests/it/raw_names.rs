#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        r#type: u32,
    }

    #[local]
    struct Local {
        r#fn: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        r#match::spawn(2).unwrap();
        (Shared { r#type: 1 }, Local { r#fn: 1 })
    }

    #[task(shared = [r#type], local = [r#fn, r#mod: u32 = 1])]
    fn r#match(mut cx: r#match::Context, r#struct: u32) {
        cx.shared.r#type.lock(|n| *n += r#struct + *cx.local.r#fn + *cx.local.r#mod);
        punctual::shutdown();
    }

    #[task(priority = 2, period = 1.millis(), shared = [r#type])]
    fn r#loop(mut cx: r#loop::Context) {
        cx.shared.r#type.lock(|n| *n += 1);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
