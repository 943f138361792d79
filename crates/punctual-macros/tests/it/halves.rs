#[punctual::app(partitions = [control(offline, heartbeat = 500.millis()), ui], main = false)]
mod app {
    use punctual::sync::shared::{Latest, Ring};

    #[both]
    pub static WANTED: Latest<[f32; 2]> = Latest::new([0.0; 2]);

    #[both]
    static SAMPLES: Ring<u64, 16> = Ring::new();

    #[shared(core = control)]
    struct Shared {}

    #[local(core = control)]
    struct Local {}

    #[init(core = control)]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[shared(core = ui)]
    struct Shared {}

    #[local(core = ui)]
    struct Local {}

    #[init(core = ui)]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(core = control, period = punctual::Duration::from_millis(1))]
    fn sample(_: sample::Context) {
        // Compiled in the other half alone, which has what this machine has not.
        punctual_bare::nothing();
    }

    #[task(core = control, crosses, capacity = 3)]
    fn set(_: set::Context, _: [f32; 2], _: u8) {}

    #[task(core = ui, crosses, priority = 2)]
    fn show(_: show::Context, at: u64) {
        // Nobody is there.
        assert!(set::spawn([0.0; 2], at as u8).unwrap_err().is_stopping());
        assert_eq!(SAMPLES.consumer().unwrap().pop(), None);
    }
}

/// Alone, a half says what it lacks.
#[test]
fn runs() {
    let error = app::run(punctual::Config::new()).unwrap_err().to_string();
    assert!(
        error.contains("the half `ui` of the app `app` cannot start without the other one, `control`"),
        "{error}"
    );
    assert!(error.contains("punctual isolate run --offline"), "{error}");
    let error = app::run(punctual::Config::new().virtual_time()).unwrap_err().to_string();
    assert!(error.contains("virtual time"), "{error}");
}
