#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        socket: std::net::UdpSocket,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { socket: std::net::UdpSocket::bind("127.0.0.1:0").unwrap() })
    }

    #[task(on_idle_source = once)]
    fn tick(_: tick::Context) {}
}
