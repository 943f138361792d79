#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        line: std::io::Stdin,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { line: std::io::stdin() })
    }

    #[idle]
    fn idle(_: idle::Context) {
        control::spawn().unwrap();
        edge::spawn_after(1.millis()).unwrap();
        waits::spawn_after(1.millis()).unwrap();
        idle::spawn().unwrap();
    }

    #[task(period = 10.millis())]
    fn control(_: control::Context) {}

    #[task(binds = line, local = [line])]
    fn edge(_: edge::Context) {}

    #[task]
    async fn waits(_: waits::Context) {}
}
