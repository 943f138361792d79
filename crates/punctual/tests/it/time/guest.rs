//! A thread that provides inputs in virtual time.

use super::*;

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use punctual::spawn_in_virtual_time;

/// Times in µs, with names.
type Events = Arc<Mutex<Vec<(u64, &'static str)>>>;

#[punctual::app(main = false, partitions = [control, io])]
mod app {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread::JoinHandle;

    use super::Events;
    use punctual::spawn_in_virtual_time;

    #[shared]
    struct Shared {
        events: Events,
    }

    #[local]
    struct Local {
        line: UnixStream,
        guest: JoinHandle<()>,
    }

    fn note(events: &Events, name: &'static str) {
        let now = punctual::now().duration_since_epoch().as_micros();
        events.lock().expect("no holder panics").push((now, name));
    }

    #[init]
    fn init(_: init::Context, events: Events) -> (Shared, Local) {
        let (line, mut end) = UnixStream::pair().expect("sockets can be made");
        let notes = events.clone();
        let guest = spawn_in_virtual_time("inputs", move |thread| {
            note(&notes, "first input");
            below::spawn().expect("it has a free slot");
            for micros in [1_000_u64, 1_500, 2_250] {
                if !thread.sleep_until(punctual::Instant::from_ticks(micros * 1_000)) {
                    return;
                }
                note(&notes, "input");
                match micros {
                    1_000 => below::spawn().expect("it has a free slot"),
                    1_500 => far::spawn().expect("it has a free slot"),
                    _ => end.write_all(b"x").expect("there is room in the socket"),
                }
            }
            // Later than the end of the app.
            assert!(!thread.sleep_until(punctual::Instant::from_ticks(1_000_000_000)));
        });
        let guest = guest.expect("it is the only one");
        let again = spawn_in_virtual_time("more", |_| {}).expect_err("there is one");
        assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
        (Shared { events }, Local { line, guest })
    }

    /// Takes 500 µs, so that the last input arrives within a job.
    #[task(priority = 2, period = 1.millis(), core = control, execution = 500.micros(), shared = [&events])]
    fn periodic(cx: periodic::Context) {
        note(cx.shared.events, "periodic");
    }

    #[task(priority = 1, core = control, shared = [&events])]
    fn below(cx: below::Context) {
        note(cx.shared.events, "below");
    }

    #[task(priority = 1, core = io, shared = [&events])]
    fn far(cx: far::Context) {
        note(cx.shared.events, "far");
    }

    #[task(binds = line, priority = 3, core = control, local = [line], shared = [&events])]
    fn line(cx: line::Context) {
        cx.local.line.read_exact(&mut [0]).expect("there is a byte");
        note(cx.shared.events, "line");
    }

    #[shutdown(local = [guest])]
    fn shutdown(cx: shutdown::Context) {
        assert!(cx.local.guest.is_finished(), "the run waits for it");
    }
}

#[test]
fn inputs_precede_jobs_of_their_instant_and_preempt_others() {
    let run = || {
        let events = Events::default();
        app::run(until_ms(4), events.clone()).expect("nothing can be missing");
        events.lock().unwrap().clone()
    };
    let events = run();
    let expected = [
        (0, "first input"),
        (0, "periodic"),
        (500, "below"),
        (1_000, "input"),
        (1_000, "periodic"),
        (1_500, "below"),
        (1_500, "input"),
        (1_500, "far"),
        (2_000, "periodic"),
        (2_250, "input"),
        (2_250, "line"),
        (3_000, "periodic"),
    ];
    // At 1.5 ms a job ends and an input arrives, in an order that is the same in every run.
    let sorted = |mut events: Vec<(u64, &'static str)>| {
        events.sort_unstable();
        events
    };
    assert_eq!(sorted(events.clone()), sorted(expected.to_vec()), "{events:?}");
    let position = |event| events.iter().position(|other| *other == event);
    assert!(position((1_000, "input")) < position((1_000, "periodic")));
    assert_eq!(position((0, "first input")), Some(0));
    for _ in 0..10 {
        assert_eq!(run(), events);
    }
}

#[test]
fn thread_in_virtual_time_needs_an_app() {
    let error = spawn_in_virtual_time("inputs", |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
