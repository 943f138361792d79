//! Apps of which `cargo xtask check instructions` counts the bytes of code: each task spawns the
//! next with a message.

macro_rules! chain {
    ($($task:ident: $next:ident,)*) => {
        #[punctual::app]
        mod app {
            use punctual::prelude::*;

            #[shared]
            struct Shared {
                total: u64,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                t00::spawn(1).unwrap();
                (Shared { total: 0 }, Local {})
            }

            $(
                #[task(priority = 1, capacity = 2, shared = [total])]
                fn $task(mut cx: $task::Context, number: u32) {
                    cx.shared.total.lock(|total| *total += u64::from(number));
                    $next::spawn(number + 1).unwrap();
                }
            )*

            #[task(priority = 2, shared = [total])]
            fn last(mut cx: last::Context, _: u32) {
                cx.shared.total.lock(|total| *total += 1);
                punctual::shutdown();
            }
        }
    };
}
