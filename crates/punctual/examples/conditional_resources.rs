//! `#[cfg]` on individual resources and on their uses.
//!
//! A field that is conditional in the struct is conditional in every list that names it.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        #[cfg(unix)]
        present: u32,
        #[cfg(windows)]
        absent: NoSuchType,
    }

    #[local]
    struct Local {
        #[cfg(unix)]
        name: &'static str,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (
            Shared {
                #[cfg(unix)]
                present: 1,
            },
            Local {
                #[cfg(unix)]
                name: "unix",
            },
        )
    }

    #[task(
        shared = [#[cfg(unix)] present, #[cfg(windows)] absent],
        local = [#[cfg(unix)] name, #[cfg(windows)] other: u32 = 0],
    )]
    fn foo(mut cx: foo::Context) {
        #[cfg(unix)]
        cx.shared.present.lock(|present| println!("{}: {present}", cx.local.name));
        #[cfg(windows)]
        cx.shared.absent.lock(|_| *cx.local.other += 1);
        punctual::shutdown();
    }
}
