//! A job that runs on top of another is distinct from it.

use punctual::config::{Config, Guard};

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        above: Vec<u64>,
        below: Vec<u64>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().expect("it has room");
        (Shared {}, Local { above: Vec::new(), below: Vec::new() })
    }

    #[task(priority = 1, local = [below])]
    fn low(cx: low::Context) {
        // Runs immediately.
        high::spawn().expect("it has room");
        clean::spawn().expect("it has room");
        cx.local.below.extend([1, 2]);
        punctual::shutdown();
    }

    #[task(priority = 2, local = [above])]
    fn high(cx: high::Context) {
        cx.local.above.push(1);
        drop(std::mem::take(cx.local.above));
    }

    #[task(priority = 3)]
    fn clean(_: clean::Context) {}
}

#[test]
fn attributes_finding_to_running_job() {
    let report = app::run(Config::new().virtual_time().guard(Guard::Report)).expect("nothing can be missing");
    let calls = |name: &str| {
        let findings = &report.task(name).expect("there is such a task").findings;
        findings.iter().map(|found| (found.call.clone(), found.count)).collect::<Vec<_>>()
    };
    assert_eq!(calls("low"), [("allocation".to_owned(), 1)], "{report}");
    assert_eq!(calls("high"), [("allocation".to_owned(), 1), ("deallocation".to_owned(), 1)], "{report}");
    assert_eq!(calls("clean"), []);
    // The next run is independent, and without a guard nothing is reported.
    let report = app::run(Config::new().virtual_time()).expect("nothing can be missing");
    assert!(report.tasks.iter().all(|task| task.findings.is_empty()), "{report}");
}
