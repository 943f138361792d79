//! Local tasks with all supported items, in a module without a prelude.
#![deny(missing_docs, unused, unsafe_code, clippy::all, clippy::pedantic, elided_lifetimes_in_paths)]
#![allow(clippy::unused_async, reason = "the tasks end at once")]
#![no_implicit_prelude]

/// An app.
#[::punctual::app]
pub mod app {
    use ::punctual::prelude::*;
    use ::std::clone::Clone as _;
    use ::std::rc::Rc;

    #[shared]
    struct Shared {
        total: u64,
        limit: u64,
    }

    #[local]
    struct Local {
        times: u64,
    }

    #[init]
    fn init(_: init::Context<'_>) -> (Shared, Local) {
        ::std::assert!(starts::spawn().is_ok());
        (Shared { total: 0, limit: 3 }, Local { times: 0 })
    }

    /// A helper receives the spawner, which is `Copy`.
    fn start(spawner: works::LocalSpawner<'_>, count: &Rc<u64>) {
        let again = spawner;
        ::std::assert!(spawner.works(Rc::clone(count), (1, 2)).is_ok());
        ::std::assert!(again.works(Rc::clone(count), (1, 2)).is_err());
        ::std::assert!(again.r#loop().is_ok());
        ::std::assert!(again.clone().is_ok());
    }

    #[task(priority = 2)]
    async fn starts(cx: starts::Context) {
        let starts::Context { local_spawner, .. } = cx;
        let count = Rc::new(0);
        start(local_spawner, &count);
        ::punctual::delay(1.millis()).await;
        ::std::assert!(*count == 0);
    }

    #[task(
        priority = 2, waits = 1, deadline = 5.millis(), execution = 1.micros(), local_task = true,
        shared = [total, &limit], local = [times, last: u64 = 0],
    )]
    async fn works(mut cx: works::Context, count: Rc<u64>, (a, b): (u64, u64)) {
        while cx.shared.total.lock(|total| *total) < *cx.shared.limit {
            cx.shared.total.lock(|total| *total += a + b + *count);
            ::punctual::delay(1.millis()).await;
            *cx.local.times += 1;
            *cx.local.last = a;
        }
        cx.local_spawner.ends().unwrap();
    }

    #[task(priority = 2, local_task)]
    async fn r#loop(_: r#loop::Context<'_>) -> ! {
        let _kept = Rc::new(1);
        ::std::future::pending().await
    }

    #[task(priority = 2, local_task)]
    async fn clone(_: clone::Context<'_>) {}

    #[task(priority = 2, local_task)]
    async fn ends(_: ends::Context<'_>) {
        ::punctual::shutdown();
    }

    #[cfg(any())]
    #[task(priority = 2, local_task)]
    async fn absent(_: absent::Context, _: Rc<u64>) {}

    /// Without the key, or with `false`, it is an ordinary task.
    #[task(local_task = false)]
    async fn other(_: other::Context<'_>) {
        ::std::assert!(other::spawn().is_err());
    }

    /// A level that would be local in another configuration.
    #[task(priority = 3)]
    fn above(_: above::Context<'_>) {}

    #[cfg(any())]
    #[task(priority = 3, local_task)]
    async fn nobody(_: nobody::Context, _: Rc<u64>) {}
}

#[::core::prelude::v1::test]
fn runs() {
    ::std::assert_eq!(main(), ::std::process::ExitCode::SUCCESS);
}
