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

    #[task(binds = socket, on_idle_source = never, local = [socket])]
    fn tick(_: tick::Context) {}
}
