//! An `idle` in virtual time that neither returns nor waits for events.

use crate::process;

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[idle]
    fn idle(_: idle::Context) -> ! {
        loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[task(period = 10.millis())]
    fn never_again(_: never_again::Context) {}
}

#[test]
#[ignore = "a program that the other test runs"]
fn program() {
    app::run(punctual::Config::new().virtual_time()).expect("the app starts");
}

#[test]
fn warns_that_idle_stops_virtual_time() {
    let mut running = process::start(process::program("endless_idle::program"));
    running.wait_for("`idle` has kept virtual time at 0 ns for 2 s");
}
