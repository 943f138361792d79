#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}
}
