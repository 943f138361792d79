#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        state: Vec<f32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { state: Vec::new() }, Local {})
    }

    #[task(priority = 2, shared = [state])]
    fn control(mut cx: control::Context) {
        let state = cx.shared.state.lock(|state| state);
        state.clear();
        cx.shared.state.lock(|s| {
            s.push(1.0);
            s
        });
    }

    #[task(priority = 3, shared = [state])]
    fn other(_: other::Context) {}
}
