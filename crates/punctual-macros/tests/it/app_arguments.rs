#[punctual::app(cpu = CPUS - 1, priority_base = 40, strict = false, trace = false, monitor = false, main = false)]
mod app {
    const CPUS: usize = 1;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        punctual::shutdown();
        (Shared {}, Local {})
    }
}

#[test]
fn runs() {
    app::run(punctual::Config::from_env()).unwrap();
}
