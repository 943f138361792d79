#[punctual::app]
mod app {
    struct Sensor;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        sensor: Sensor,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { sensor: Sensor })
    }

    #[task(binds = sensor, local = [sensor])]
    fn tick(_: tick::Context) {}
}
