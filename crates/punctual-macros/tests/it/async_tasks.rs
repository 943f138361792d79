//! Async tasks with all supported items, in a module without a prelude.
#![deny(missing_docs, unused, unsafe_code, clippy::all, clippy::pedantic, elided_lifetimes_in_paths)]
#![allow(clippy::unused_async, reason = "the tasks end at once")]
#![no_implicit_prelude]

/// Another app, with tasks of the same names.
#[::punctual::app(main = false)]
#[allow(dead_code, reason = "only its names matter")]
pub mod other {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context<'_>) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(waits = 64)]
    async fn sends(_: sends::Context, count: u32) {
        ::std::assert!(sends::spawn(count).is_err());
    }
}

/// An app.
#[::punctual::app]
mod app {
    use ::punctual::prelude::*;
    use ::std::option::Option::{self, None, Some};
    use ::std::string::String;

    #[derive(Debug)]
    struct Private;

    #[shared]
    struct Shared {
        total: u64,
        limit: u64,
        #[cfg(any())]
        absent: u64,
    }

    #[local]
    struct Local {
        name: String,
    }

    #[init]
    fn init(_: init::Context<'_>) -> (Shared, Local) {
        ::std::assert!(sends::spawn(Private, (1, 2)).is_ok());
        (Shared { total: 0, limit: 3 }, Local { name: String::new() })
    }

    #[task(
        priority = 2, waits = 1, deadline = 5.millis(), execution = 1.micros(),
        shared = [total, &limit, #[cfg(any())] absent], local = [name, last: Option<u64> = None],
    )]
    async fn sends(cx: sends::Context, _private: Private, (a, b): (u64, u64)) {
        let sends::Context { shared, local, .. } = cx;
        let mut total = shared.total;
        while total.lock(|total| *total) < *shared.limit {
            ::punctual::delay(1.millis()).await;
            total.lock(|total| *total += a + b);
            local.name.push('x');
            *local.last = Some(a);
        }
        ::std::assert!(r#loop::spawn().is_ok());
    }

    #[task]
    async fn r#loop(_: r#loop::Context<'_>) -> ! {
        loop {
            let forever = ::std::future::pending::<()>();
            let _ = ::punctual::timeout_after(1.millis(), forever).await;
            ::punctual::shutdown();
        }
    }

    #[cfg(any())]
    #[task(priority = 9)]
    async fn absent(_: absent::Context) {}
}

#[::core::prelude::v1::test]
fn runs() {
    ::std::assert_eq!(main(), ::std::process::ExitCode::SUCCESS);
}
