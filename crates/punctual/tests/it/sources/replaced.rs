//! A job's changes of its own source: the end of a file, and another source in its place.

use super::*;

#[punctual::app(main = false)]
mod app {
    use std::io::{PipeReader, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        source: OwnedFd,
        next: Vec<OwnedFd>,
        retained: Vec<UnixStream>,
    }

    fn closed_pipe(text: &[u8]) -> PipeReader {
        let (reader, mut writer) = std::io::pipe().expect("pipes can be made");
        writer.write_all(text).expect("there is room in the pipe");
        reader
    }

    #[init]
    fn init(_: init::Context, ends: bool) -> (Shared, Local) {
        let (quiet, mut retained) = UnixStream::pair().expect("sockets can be made");
        if ends {
            retained.write_all(b"!").expect("there is room in the socket");
        }
        // The first is at its end at once, the second after two bytes; the third stays open. It has
        // a number that no other file gets, so that the number is closed when the app runs again.
        let quiet = rustix::io::fcntl_dupfd_cloexec(&quiet, 700).expect("it can be duplicated");
        let next = vec![quiet, closed_pipe(b"ab").into()];
        (Shared {}, Local { source: closed_pipe(b"").into(), next, retained: vec![retained] })
    }

    #[task(binds = source, priority = 2, local = [source, next, retained, ends: u32 = 0])]
    fn read(cx: read::Context) {
        let mut byte = [0];
        let mut file = std::fs::File::from(cx.local.source.try_clone().expect("it can be duplicated"));
        match (file.read(&mut byte).expect("it is ready"), byte[0]) {
            (0, _) => {
                *cx.local.ends += 1;
                // The end of a file is an event that nothing consumes, so it recurs.
                if *cx.local.ends == 3 || *cx.local.ends == 6 {
                    *cx.local.source = cx.local.next.pop().expect("the last one does not end");
                }
            }
            (_, b'!') => punctual::shutdown(),
            (_, _) => {}
        }
    }
}

#[test]
fn end_of_file_releases_task_until_source_changes() {
    let _alone = crate::alone();
    // Three times for each end, and the two bytes. In virtual time the run ends because no further
    // event is possible.
    let report = app::run(Config::new().virtual_time(), false).expect("nothing can be missing");
    assert_eq!(report.outcome, Outcome::Quiescent);
    assert_eq!(report.tasks[0].jobs, 3 + 2 + 3);
    // On threads the third source ends the run, which begins with the number that the first run
    // ended with.
    let report = app::run(Config::new(), true).expect("the app starts");
    assert_eq!(report.outcome, Outcome::Shutdown);
    assert_eq!(report.tasks[0].jobs, 3 + 2 + 3 + 1);
}
