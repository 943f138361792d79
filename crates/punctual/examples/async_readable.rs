//! Waiting for a descriptor in the middle of a conversation.
//!
//! `server` tries to receive, and waits only if there is no data. Its level is free during the
//! wait: `client`, below it, is the other end and sends at any time. Between two requests the
//! server sets a time limit.

#[punctual::app]
mod app {
    use std::io::{ErrorKind, Result};
    use std::os::unix::net::UnixDatagram;

    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        near: UnixDatagram,
        far: UnixDatagram,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (near, far) = UnixDatagram::pair().expect("sockets can be made");
        near.set_nonblocking(true).expect("a socket can be made not to block");
        far.set_nonblocking(true).expect("a socket can be made not to block");
        server::spawn().unwrap();
        client::spawn().unwrap();
        (Shared {}, Local { near, far })
    }

    /// Receives a word, without a time limit.
    async fn receive<'a>(socket: &UnixDatagram, bytes: &'a mut [u8]) -> Result<&'a str> {
        let length = loop {
            match socket.recv(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => punctual::readable(socket).await?,
                received => break received?,
            }
        };
        Ok(std::str::from_utf8(&bytes[..length]).expect("it is a word"))
    }

    #[task(priority = 2, local = [near])]
    async fn server(cx: server::Context) {
        let bytes = &mut [0; 16];
        while let Ok(request) = punctual::timeout_after(500.millis(), receive(cx.local.near, bytes)).await {
            let request = request.expect("the socket is open");
            println!("  server: {request}");
            cx.local.near.send(request.to_uppercase().as_bytes()).expect("there is room in the socket");
        }
        println!("  server: has waited for long enough");
        punctual::shutdown();
    }

    #[task(priority = 1, local = [far])]
    async fn client(cx: client::Context) {
        for word in ["one", "two", "three"] {
            println!("client: sends {word}");
            cx.local.far.send(word.as_bytes()).expect("there is room in the socket");
            let bytes = &mut [0; 16];
            let answer = receive(cx.local.far, bytes).await.expect("the socket is open");
            println!("client: {answer}");
        }
    }
}
