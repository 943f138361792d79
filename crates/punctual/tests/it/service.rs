//! An app under a service manager: notifications of its start and stop, and the watchdog.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use crate::process;

/// Timeout of the watchdog, in µs: as long as several periods of the task.
const TIMEOUT_US: u64 = 300_000;
/// Variable with the number of jobs that end, before one that does not.
const JOBS: &str = "JOBS";

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        left: u32,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let left = std::env::var(super::JOBS).expect("the test sets it").parse().unwrap();
        (Shared {}, Local { left })
    }

    #[task(period = 10.millis(), local = [left])]
    fn work(cx: work::Context) {
        *cx.local.left = cx.local.left.saturating_sub(1);
        if *cx.local.left == 0 {
            super::stick();
        }
    }
}

/// Sleeps until the test ends the program.
fn stick() {
    println!("stuck");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    app::run(punctual::Config::from_env()).unwrap();
}

/// The service manager's end.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-notify-{name}-{}", std::process::id()));
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(process::LIMIT)).unwrap();
        Self { socket, path }
    }

    /// Starts the app, of which this many jobs end.
    fn start(&self, jobs: u32) -> process::Running {
        let mut command = process::program("service::program");
        command.env("NOTIFY_SOCKET", &self.path).env("WATCHDOG_USEC", TIMEOUT_US.to_string());
        process::start({
            command.env(JOBS, jobs.to_string());
            command
        })
    }

    fn receive(&self) -> std::io::Result<String> {
        let mut bytes = [0; 64];
        let length = self.socket.recv(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(feature = "signals")]
#[test]
fn notifies_manager_of_start_life_and_stop() {
    let manager = Manager::new("life");
    let app = manager.start(u32::MAX);
    assert_eq!(manager.receive().unwrap(), "READY=1");
    for _ in 0..3 {
        assert_eq!(manager.receive().unwrap(), "WATCHDOG=1");
    }
    app.signal(rustix::process::Signal::TERM);
    let stopping = (0..100).map(|_| manager.receive().unwrap()).find(|text| text != "WATCHDOG=1");
    assert_eq!(stopping.as_deref(), Some("STOPPING=1"));
    assert_eq!(app.end().code, 0);
}

#[test]
fn watchdog_expires_when_job_does_not_end() {
    let manager = Manager::new("stuck");
    let mut app = manager.start(50);
    assert_eq!(manager.receive().unwrap(), "READY=1");
    assert_eq!(manager.receive().unwrap(), "WATCHDOG=1");
    app.wait_for("stuck");
    // The notifications before.
    manager.socket.set_nonblocking(true).unwrap();
    while manager.receive().is_ok() {}
    manager.socket.set_nonblocking(false).unwrap();
    // The next check sees the last jobs, and may have been in progress.
    manager.socket.set_read_timeout(Some(Duration::from_micros(2 * TIMEOUT_US))).unwrap();
    let late = (0..3).take_while(|_| manager.receive().is_ok()).count();
    assert!(late < 3, "the app seems to be alive");
    assert!(manager.receive().is_err());
}
