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

    #[task(binds = socket, local = [socket: Option<std::net::UdpSocket> = None])]
    fn tick(_: tick::Context) {}
}
