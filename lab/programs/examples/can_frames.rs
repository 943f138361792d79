//! A task bound to a CAN socket receives the frames that another task sends.
//!
//!     can_frames INTERFACE COUNT
//!
//! On a virtual interface (vcan) a frame sent on one socket arrives at the others.

use std::env;
use std::process::ExitCode;

use punctual::Config;
use punctual_lab::{CanSocket, Result, two};

const USAGE: &str = "INTERFACE COUNT, as in vcan0 100";

fn main() -> Result<ExitCode> {
    let (interface, count): (String, u8) = two(USAGE, env::args().skip(1))?;
    let open = || CanSocket::open(&interface).map_err(|error| format!("{interface}: {error}"));
    let report = app::run(Config::from_env(), open()?, open()?, count)?;
    println!("{} after {} frames", report.outcome, report.tasks[1].jobs);
    Ok(ExitCode::from(report.exit_code()))
}

#[punctual::app]
mod app {
    use punctual_lab::{CanFrame, CanSocket};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        inbox: CanSocket,
        outbox: CanSocket,
        count: u8,
    }

    #[init]
    fn init(_: init::Context, inbox: CanSocket, outbox: CanSocket, count: u8) -> (Shared, Local) {
        send::spawn(1).expect("it waits for nobody");
        (Shared {}, Local { inbox, outbox, count: count.max(1) })
    }

    #[task(priority = 1, local = [outbox])]
    fn send(cx: send::Context, n: u8) {
        let frame = CanFrame::new(0x100 + u16::from(n), &[n, !n]);
        cx.local.outbox.send(&frame).expect("the interface is up");
    }

    #[task(binds = inbox, priority = 2, local = [inbox, count])]
    fn receive(cx: receive::Context) {
        let frame = cx.local.inbox.receive().expect("a frame is there");
        let n = frame.data()[0];
        assert_eq!(frame.id(), 0x100 + u32::from(n), "the frame is another one");
        assert_eq!(frame.data(), [n, !n]);
        if n == *cx.local.count {
            punctual::shutdown();
        } else {
            send::spawn(n + 1).expect("the last one was sent");
        }
    }
}
