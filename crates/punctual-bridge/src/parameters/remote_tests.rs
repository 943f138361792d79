//! Apps that run, have ended, do not answer, or answer nonsense.

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::super::protocol::MAX_BYTES;
use super::*;
use crate::peer::tests::as_another_user;

#[test]
fn finds_sockets_that_listen_in_the_list_of_the_kernel() {
    let list = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 77663
0000000000000000: 00000002 00000000 00010000 0001 01 80 @punctual-parameters/gimbal/00000000000000ff
0000000000000000: 00000003 00000000 00000000 0001 03 81 @punctual-parameters/gimbal/00000000000000ff
0000000000000000: 00000002 00000000 00010000 0001 01 82 /run/punctual-parameters/x
0000000000000000: 00000002 00000000 00010000 0001 01 83 @other
garbage
0000000000000000: 00000002 00000000 0001000g 0001 01 84 @punctual-parameters/x/00000000000000ff
";
    assert_eq!(sockets(list, SOCKETS).collect::<Vec<_>>(), ["punctual-parameters/gimbal/00000000000000ff"]);
    let names = [
        ("punctual-parameters/gimbal/00000000000000ff", Some("gimbal")),
        ("punctual-parameters/../x/00000000000000ff", None),
        ("punctual-parameters/gimbal/ff", None),
        ("punctual-parameters/gim\u{1b}bal/00000000000000ff", None),
        ("punctual-parameters/", None),
    ];
    for (socket, app) in names {
        assert_eq!(app_of(socket, SOCKETS), app, "{socket}");
    }
}

#[test]
fn lists_app_of_another_user_once() {
    let test = "parameters::remote::tests::lists_app_of_another_user_once";
    let theirs = as_another_user(test, || remote("unit-others", REPLY_TIMEOUT));
    let Some((_listener, remote)) = theirs else { return };
    let mut remotes = Remotes::default();
    for _ in 0..2 {
        remotes.probe(&remote.socket);
    }
    assert_eq!(remotes.found, []);
    assert_eq!(remotes.others, [Other { app: "unit-others".into(), user: 65534 }]);
}

#[test]
fn sends_no_request_to_another_user() {
    let test = "parameters::remote::tests::sends_no_request_to_another_user";
    let theirs = as_another_user(test, || remote("unit-replaced", Duration::from_millis(20)));
    let Some((listener, remote)) = theirs else { return };
    assert!(matches!(remote.list(), Err(RequestError::Gone(_))));
    let mut request = Vec::new();
    // The connection was made and closed, so neither call waits.
    listener.set_nonblocking(true).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    stream.read_to_end(&mut request).unwrap();
    assert_eq!(request, b"");
}

/// Returns an app at a socket of this name.
fn remote(name: &str, timeout: Duration) -> (UnixListener, Remote) {
    let socket = format!("{SOCKETS}{name}/{:016x}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&socket).unwrap()).unwrap();
    (listener, Remote { app: name.into(), process: 1, socket, timeout })
}

#[test]
fn reports_ended_and_silent_apps() {
    let (listener, remote) = remote("unit-silent", Duration::from_millis(20));
    assert!(matches!(remote.list(), Err(RequestError::Silent(_))));
    drop(listener);
    let error = remote.list().unwrap_err().to_string();
    assert_eq!(error, "unit-silent (process 1) has ended, or no longer serves its parameters");
}

#[test]
fn rejects_malformed_answers() {
    let (listener, remote) = remote("unit-strange", Duration::from_secs(600));
    let many = vec![b'a'; MAX_BYTES + 4096];
    let answers: [(&'static [u8], &str); 6] = [
        (b"", "has ended"),
        (b"\x80\n", "malformed answer of unit-strange (process 1): not text"),
        (b"punctual-parameters/9\nlisted\n", "version \"9\""),
        (b"punctual-parameters/1\nlisted\nkp\tf64\n", "does not have the expected fields"),
        (b"punctual-parameters/1\nchanged\n", "unexpected answer"),
        (many.leak(), "file too large"),
    ];
    let serving = std::thread::spawn(move || {
        for (answer, _) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            stream.read_to_end(&mut request).unwrap();
            // The last answer is not read completely.
            let _ = stream.write_all(answer);
        }
    });
    for (_, why) in answers {
        let error = remote.list().unwrap_err().to_string();
        assert!(error.to_lowercase().contains(why), "{error}");
    }
    serving.join().unwrap();
}

#[test]
fn lists_running_apps() {
    let app =
        |app: &str, process| Remote { app: app.into(), process, socket: "".into(), timeout: REPLY_TIMEOUT };
    let other = Other { app: "theirs".into(), user: 7 };
    let none = Remotes { found: vec![], others: vec![other.clone()] };
    let error = none.named("mine").unwrap_err().to_string();
    assert!(
        error.starts_with("no running app of this user has parameters to set; theirs belongs to user 7"),
        "{error}"
    );
    let this = app("foot", std::process::id());
    let found = vec![app("arm", u32::MAX), app("arm", u32::MAX - 1), app("leg", u32::MAX - 2), this];
    let some = Remotes { found, others: vec![other] };
    assert_eq!(some.named("leg").unwrap().process(), u32::MAX - 2);
    assert_eq!(some.named(&u32::MAX.to_string()).unwrap().app(), "arm");
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    assert_eq!(some.named(program).unwrap().app(), "foot");
    let error = some.named("arm").unwrap_err().to_string();
    let expected =
        "arm (process 4294967295) and arm (process 4294967294) match arm: specify a process number";
    assert_eq!(error, expected);
    let error = some.named("theirs").unwrap_err().to_string();
    assert!(
        error.contains("process theirs with parameters; there are arm (process 4294967295), ")
            && error.contains("user 7"),
        "{error}"
    );
    let error = some.named("mine").unwrap_err().to_string();
    assert!(!error.contains("user 7"), "{error}");
}
