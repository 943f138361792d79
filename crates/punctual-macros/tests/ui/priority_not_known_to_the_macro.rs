mod other {
    pub const LEVEL: u8 = 3;
}

#[punctual::app]
mod app {
    const LEVEL: u8 = 2;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = LEVEL)]
    fn known(_: known::Context) {}

    #[task(priority = super::other::LEVEL)]
    fn unknown(_: unknown::Context) {}

    #[task(priority = 0)]
    fn at_the_level_of_idle(_: at_the_level_of_idle::Context) {}

    #[task(priority = 27 + LEVEL)]
    fn too_high(_: too_high::Context) {}
}
