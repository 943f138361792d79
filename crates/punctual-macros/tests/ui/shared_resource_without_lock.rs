#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        state: u32,
        gain: u32,
        on: bool,
        samples: Vec<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { state: 0, gain: 1, on: true, samples: Vec::new() }, Local {})
    }

    #[task(priority = 2, shared = [state])]
    fn control(mut cx: control::Context) {
        *cx.shared.state += 1;
    }

    #[task(priority = 3, shared = [state, on, samples])]
    fn uses_values(cx: uses_values::Context) {
        if cx.shared.on {
            cx.shared.samples.push(1);
        }
        let _ = !cx.shared.on;
        let _ = cx.shared.state as f32;
        for _ in cx.shared.samples {}
    }
}
