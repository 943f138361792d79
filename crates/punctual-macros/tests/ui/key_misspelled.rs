#[punctual::app(partition = [a, b])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init(shared = [count])]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(prio = 2, periode = 10.millis())]
    fn control(_: control::Context) {}

    #[task(priority 2, capacity: 3, deadline = 1.5.ms())]
    fn other(_: other::Context) {}
}
