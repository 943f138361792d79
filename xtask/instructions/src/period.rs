//! Apps with one periodic task that does nothing, on kernel threads.

/// Runs the app, monitored or not, for a number of periods.
pub(crate) fn run(is_monitored: bool, periods: u64) {
    let run = if is_monitored { monitored::run } else { plain::run };
    run(punctual::Config::new(), periods).expect("the app starts");
}

macro_rules! app {
    ($name:ident, $monitor:literal) => {
        #[punctual::app(main = false, monitor = $monitor)]
        mod $name {
            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                left: u64,
            }

            #[init]
            fn init(_: init::Context, periods: u64) -> (Shared, Local) {
                (Shared {}, Local { left: periods })
            }

            #[task(priority = 1, period = 2.millis(), local = [left])]
            fn tick(cx: tick::Context) {
                match cx.local.left {
                    0 => punctual::shutdown(),
                    left => *left -= 1,
                }
            }
        }
    };
}

app!(plain, false);
app!(monitored, true);
