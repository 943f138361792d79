//! Apps without the features of the crate. The test prints the features of this build, and passes
//! with any set of them.

use punctual::Config;

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { count: 0 }, Local {})
    }

    #[task(priority = 2, period = 1.millis(), shared = [count])]
    fn sample(mut cx: sample::Context) {
        let count = cx.shared.count.lock(|count| {
            *count += 1;
            *count
        });
        if count == 3 {
            last::spawn().expect("nothing else spawns it");
        }
    }

    #[task(priority = 1)]
    fn last(_: last::Context) {
        punctual::shutdown();
    }
}

#[test]
fn runs_with_any_features_and_says_what_was_not_measured() {
    for config in [Config::new().virtual_time(), Config::new()] {
        let report = app::run(config).expect("nothing is asked for");
        assert_eq!(report.outcome, punctual::report::Outcome::Shutdown);
        let sample = report.task("sample").expect("every task is in the report");
        assert_eq!(sample.measured, cfg!(feature = "monitoring"));
        assert_eq!(sample.jobs >= 3, cfg!(feature = "monitoring"));
        let says_so = report.to_string().contains("built without its feature `monitoring`");
        assert_eq!(says_so, !cfg!(feature = "monitoring"), "{report}");
    }
}
