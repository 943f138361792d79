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

/// `portable` depends on `punctual` without features, and this test on all of them, in one graph.
#[test]
fn package_without_features_builds_and_runs_in_a_graph_with_all_features() {
    let excerpt = portable::run(Config::new().virtual_time()).expect("virtual time needs nothing");
    assert_eq!((excerpt.app, excerpt.first, excerpt.tasks), ("app", "sample", 2));
    assert_eq!(excerpt.jobs >= 3, cfg!(feature = "monitoring"));
    assert_eq!(excerpt.response.median.is_some(), cfg!(feature = "monitoring"));
    let _alone = crate::alone();
    let report = app::run(Config::new().virtual_time()).expect("virtual time needs nothing");
    assert_eq!(portable::excerpt(&report), excerpt);
}

#[test]
fn runs_with_any_features_and_lists_unmeasured_values() {
    let _alone = crate::alone();
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
