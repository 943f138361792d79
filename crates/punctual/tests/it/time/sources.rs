//! Descriptors of tasks in another partition than the one without work.

use punctual::Config;
use punctual::report::Outcome;

use crate::log::Log;

#[punctual::app(main = false, partitions = [a, b])]
mod app {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use crate::log::Log;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        log: Log,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context, log: Log) -> (Shared, Local) {
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        busy::spawn().unwrap();
        writes::spawn_after(1.millis()).unwrap();
        writes::spawn_after(7.millis()).unwrap();
        (Shared { log }, Local { line, other_end })
    }

    #[task(core = a, capacity = 2, shared = [&log], local = [other_end])]
    fn writes(cx: writes::Context) {
        cx.local.other_end.write_all(b"x").unwrap();
        cx.shared.log.note("written");
    }

    /// At the level of `reads`, so that data written at 1 ms stays there until 5 ms.
    #[task(core = b, shared = [&log])]
    fn busy(cx: busy::Context) {
        punctual::spend(5.millis());
        cx.shared.log.note("busy ends");
    }

    #[task(core = b, binds = line, shared = [&log], local = [line])]
    fn reads(cx: reads::Context) {
        assert_eq!(cx.local.line.read(&mut [0; 8]).unwrap(), 1);
        cx.shared.log.note("read");
    }
}

#[test]
fn pending_reads_do_not_stop_virtual_time() {
    for _ in 0..20 {
        let log = Log::default();
        let report = app::run(Config::new().virtual_time(), log.clone()).unwrap();
        assert_eq!(report.outcome, Outcome::Quiescent);
        let expected = [(1, "written"), (5, "busy ends"), (5, "read"), (7, "written"), (7, "read")];
        assert_eq!(log.take(), expected);
    }
}
