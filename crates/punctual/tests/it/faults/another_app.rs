//! A panic that leaves a critical section of one app is not a fault of another app, which the
//! thread runs before it ends its job or `idle`.

use punctual::Config;
use punctual::report::Outcome;

use crate::faults::sections::{CAUGHT, caught, fail};

#[punctual::app(main = false)]
mod inner {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        ends::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn ends(_: ends::Context) {
        punctual::shutdown();
    }
}

#[punctual::app(main = false)]
mod outer {
    use punctual::prelude::*;

    use super::*;

    #[shared]
    struct Shared {
        one: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { one: 0 }, Local {})
    }

    #[idle(shared = [one])]
    fn idle(mut cx: idle::Context) {
        caught(|| cx.shared.one.lock(|_| fail()));
        let report = inner::run(Config::new().virtual_time()).expect("the other app starts");
        assert_eq!(report.outcome, Outcome::Shutdown);
    }

    #[task(priority = 1, shared = [one])]
    fn job(_: job::Context) {}
}

#[test]
fn fault_is_that_of_its_app() {
    let _alone = crate::alone();
    for config in [Config::new(), Config::new().virtual_time()] {
        let report = outer::run(config).expect("the app starts");
        let expected = Outcome::Panicked { task: "idle".into(), message: CAUGHT.into() };
        assert_eq!(report.outcome, expected, "{}", report.virtual_time);
    }
}
