//! A job may replace the event source that its task is bound to.
//!
//! `read` is released for each byte, and once more for the end of the stream. Then it replaces the
//! source by the next connection, which releases it from then on.

#[punctual::app]
mod app {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        connection: UnixStream,
        next: Vec<UnixStream>,
    }

    /// Returns a connection whose other end has written `text` and closed.
    fn connection(text: &str) -> UnixStream {
        let (mut other_end, connection) = UnixStream::pair().expect("sockets can be made");
        other_end.write_all(text.as_bytes()).expect("there is room in the socket");
        connection
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local { connection: connection("ab"), next: vec![connection("c")] })
    }

    #[task(binds = connection, local = [connection, next])]
    fn read(cx: read::Context) {
        let mut byte = [0];
        match cx.local.connection.read(&mut byte).expect("something is there") {
            0 => match cx.local.next.pop() {
                Some(next) => {
                    println!("closed, on to the next");
                    *cx.local.connection = next;
                }
                None => {
                    println!("closed, and that was the last");
                    punctual::shutdown();
                }
            },
            _ => println!("read {}", char::from(byte[0])),
        }
    }
}
