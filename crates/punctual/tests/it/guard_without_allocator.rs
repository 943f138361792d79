//! A program without the guard's allocator gets a warning that allocations are not detected.
#![cfg(feature = "guard")]

use punctual::config::{Config, Guard};

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        pushes::spawn().expect("it has room");
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn pushes(_: pushes::Context) {
        drop(std::hint::black_box(vec![1_u8]));
    }
}

#[test]
fn reports_unobserved_allocations() {
    let run = |guard| app::run(Config::new().virtual_time().guard(guard)).expect("nothing can be missing");
    let report = run(Guard::Report);
    assert!(report.settings.notes.iter().any(|note| note.contains("does not see allocations")), "{report}");
    assert!(report.tasks[0].findings.is_empty(), "{report}");
    assert!(run(Guard::Off).settings.notes.is_empty());
}
