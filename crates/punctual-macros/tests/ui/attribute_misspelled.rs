#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[taks(priority = 2)]
    fn control(_: control::Context) {}

    #[interrupt(binds = UART0)]
    fn uart(_: uart::Context) {}

    fn log(_: log::Context) {}
}
