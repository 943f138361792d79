#[punctual::app]
mod app {
    #[shared]
    struct Shared {
        #[unsafe(link_section = ".fast")]
        table: [u8; 4],
    }

    #[local]
    struct Local {
        #[unsafe(link_section = ".fast")]
        own: u8,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { table: [0; 4] }, Local { own: 0 })
    }
}
