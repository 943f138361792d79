//! A bound task is released as long as its event source is readable.
//!
//! `send` writes three messages at once, and `receive` takes one per job: it is released again for
//! the next, as by an interrupt line that stays raised. The last of them ends the app.

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
        send::spawn().unwrap();
        (Shared {}, Local { inbox, outbox })
    }

    #[task(priority = 2, local = [outbox])]
    fn send(cx: send::Context) {
        for word in ["one", "two", "three"] {
            println!("send {word}");
            cx.local.outbox.send(word.as_bytes()).expect("the socket is open");
        }
    }

    #[task(binds = inbox, priority = 1, local = [inbox, jobs: u32 = 0])]
    fn receive(cx: receive::Context) {
        let mut bytes = [0; 8];
        let length = cx.local.inbox.recv(&mut bytes).expect("something is there");
        *cx.local.jobs += 1;
        println!("job {} receives {}", cx.local.jobs, String::from_utf8_lossy(&bytes[..length]));
        if *cx.local.jobs == 3 {
            punctual::shutdown();
        }
    }
}
