//! Local sockets of apps: abstract ones, which a killed app does not leave behind, found by the
//! app's name.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The list of the network namespace's sockets.
pub(crate) const LIST: &str = "/proc/net/unix";
/// The flag of a listening socket.
const LISTENS: u32 = 0x1_0000;
pub(crate) const MAX_NAME: usize = 48;

/// Returns `true` for a name that cannot be confused with a process number and that needs no
/// escaping in socket names.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Creates a socket of the app `name` with an unpredictable name, which cannot be taken in advance.
pub(crate) fn listen(prefix: &str, name: &str) -> io::Result<UnixListener> {
    let random = RandomState::new().hash_one(std::process::id());
    let address = SocketAddr::from_abstract_name(format!("{prefix}{name}/{random:016x}"))?;
    let listener = UnixListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects without blocking: a connection to a stopped app with a full backlog would block
/// forever.
pub(crate) fn dial(socket: &str) -> io::Result<UnixStream> {
    dial_address(&SocketAddrUnix::new_abstract_name(socket.as_bytes())?)
}

/// Connects to an address without blocking; see [`dial`].
pub(crate) fn dial_address(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let end = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&end, address)?;
    Ok(end.into())
}

/// Returns the names of the sockets with this prefix in the kernel's list.
pub(crate) fn sockets<'a>(list: &'a str, prefix: &str) -> impl Iterator<Item = &'a str> {
    list.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
        let name = fields.nth(3)?.strip_prefix('@')?;
        // Accepted connections have the name of their listening socket.
        (flags & LISTENS != 0 && name.starts_with(prefix)).then_some(name)
    })
}

/// Returns the name of the app that listens at a socket with this name, if the name is valid.
pub(crate) fn app_of<'a>(socket: &'a str, prefix: &str) -> Option<&'a str> {
    let (app, random) = socket.strip_prefix(prefix)?.split_once('/')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_name(app) && is_random).then_some(app)
}
