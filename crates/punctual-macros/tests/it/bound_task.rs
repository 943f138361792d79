#[punctual::app]
mod app {
    use std::os::unix::net::UnixDatagram;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        inbox: UnixDatagram,
        outbox: UnixDatagram,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (inbox, outbox) = UnixDatagram::pair().unwrap();
        send::spawn().unwrap();
        (Shared {}, Local { inbox, outbox })
    }

    #[task(local = [outbox])]
    fn send(cx: send::Context) {
        cx.local.outbox.send(b"now").unwrap();
    }

    #[task(binds = inbox, priority = 3, local = [inbox, bytes: [u8; 8] = [0; 8]])]
    fn receive(cx: receive::Context) {
        assert_eq!(cx.local.inbox.recv(cx.local.bytes).unwrap(), 3);
        punctual::shutdown();
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
