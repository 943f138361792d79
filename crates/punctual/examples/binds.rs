//! A task bound to an event source is released when the source becomes readable.
//!
//! Any local that is `AsFd` can be the source: a socket, a pipe, a timer, an input line. `receive`
//! owns its end of the pair; the kernel wakes it when `send` writes to the other. It is above
//! `send`, so a job that it spawns waits, and the messages are processed one by one.

// ANCHOR: app
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
        let (inbox, outbox) = UnixDatagram::pair().expect("sockets can be made");
        send::spawn(1).unwrap();
        (Shared {}, Local { inbox, outbox })
    }

    #[task(priority = 1, local = [outbox])]
    fn send(cx: send::Context, n: u8) {
        println!("send {n}");
        cx.local.outbox.send(&[n, n + 10]).expect("the socket is open");
    }

    #[task(binds = inbox, priority = 2, local = [inbox, bytes: [u8; 8] = [0; 8]])]
    fn receive(cx: receive::Context) {
        let length = cx.local.inbox.recv(cx.local.bytes).expect("something is there");
        println!("receive {:?}", &cx.local.bytes[..length]);
        match cx.local.bytes[0] {
            3 => punctual::shutdown(),
            n => send::spawn(n + 1).unwrap(),
        }
    }
}
