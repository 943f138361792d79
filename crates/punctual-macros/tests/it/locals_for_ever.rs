//! Locals of an async task that never completes are `'static`, like those of `init` and `idle`.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        field: u32,
        taken_over: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        endless::spawn().unwrap();
        (Shared {}, Local { field: 1, taken_over: 3 })
    }

    #[task(local = [field, taken_over, declared: u32 = 2])]
    async fn endless(cx: endless::Context) -> ! {
        let (field, declared): (&'static mut u32, &'static mut u32) = (cx.local.field, cx.local.declared);
        let sum = std::thread::spawn(move || *field + *declared).join().unwrap();
        *cx.local.taken_over += sum;
        punctual::delay(1.millis()).await;
        punctual::shutdown();
        std::future::pending().await
    }

    #[shutdown(local = [taken_over])]
    fn shutdown(cx: shutdown::Context) {
        assert_eq!(*cx.local.taken_over, 6);
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
