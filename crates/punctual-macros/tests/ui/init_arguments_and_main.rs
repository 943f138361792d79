#[punctual::app(main = true)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, path: &str) -> (Shared, Local) {
        (Shared {}, Local {})
    }
}

fn main() {}
