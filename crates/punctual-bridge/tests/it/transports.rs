//! Transports as separate processes, of a bridge whose topics are published by this one.

#[path = "../../examples/print_topics.rs"]
mod print_topics;

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use punctual::background::{HelperCommand, HelperProcess};
use punctual_bridge::messages::Vector3;
use punctual_bridge::transport::Attachment;
use punctual_bridge::{Bridge, Channel, Clock, Incoming, Publisher, Sample, Sink, Topic, TransportServer};
use punctual_process::child::{BoundedChild, TEST_LIMIT};

const ZERO: Vector3 = Vector3 { x: 0.0, y: 0.0, z: 0.0 };
/// Longer than any machine takes.
const LIMIT: Duration = Duration::from_secs(1200);

/// The variables with the part of a child, and with the name of its app.
const PART: &str = "PUNCTUAL_TEST_PART";
const APP: &str = "PUNCTUAL_TEST_APP";

/// Runs the test `child` in another process, which writes to a pipe.
fn start_child(part: &str, app: &str) -> Child {
    child_command(part, app).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn child_command(part: &str, app: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "transports::child", "--nocapture"]).env(PART, part).env(APP, app);
    command
}

/// Returns the lines that a child prints, without those of the test harness.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.filter(|line| line.starts_with(['/', '0', '+']))
}

/// The part of the second process. Does nothing in the first process.
#[test]
fn child() {
    let (Ok(part), Ok(app)) = (env::var(PART), env::var(APP)) else { return };
    // The harness has printed the beginning of a line.
    println!();
    match part.as_str() {
        "print" => print_topics::print(&app, 3, &mut std::io::stdout().lock()).unwrap(),
        "count" => count(&app),
        "answer" => answer(&app),
        _ => panic!("{part}"),
    }
}

/// Counts messages until the app ends or this process is killed.
fn count(app: &str) {
    let mut app = Attachment::open(app, "counter").unwrap();
    println!("+attached");
    let mut is_running = true;
    while is_running {
        is_running = app.wait(LIMIT);
        app.read(|_, message| println!("+{}", message.sequence));
        std::io::stdout().flush().unwrap();
    }
}

/// Returns each message to the app.
fn answer(app: &str) {
    let mut app = Attachment::open(app, "answer").unwrap();
    let mut answers = app.publisher("/answers").unwrap();
    println!("+attached");
    while app.wait(LIMIT) {
        app.read(|_, message| answers.publish(message.payload).unwrap());
    }
}

fn publish<const N: usize>(publisher: &mut Publisher<Vector3, N>, numbers: std::ops::Range<u32>) {
    for number in numbers {
        publisher.publish(punctual::now(), Vector3 { x: f64::from(number) / 4.0, ..ZERO });
    }
}

fn name(test: &str) -> String {
    format!("it-{test}-{}", std::process::id())
}

#[test]
fn a_process_discovers_and_prints_topics() {
    static ANGLES: Topic<Vector3, 16> = Topic::new("/angles");
    let app = name("prints");
    let bridge = Bridge::new()
        .topic(&ANGLES)
        .diagnostics(false)
        .transports(TransportServer::new(&app))
        .start()
        .unwrap();
    let mut child = start_child("print", &app);
    let mut lines = lines(&mut child);
    assert_eq!(lines.next().unwrap(), "/angles: geometry_msgs/msg/Vector3, published by the app");
    publish(&mut ANGLES.publisher().unwrap(), 0..4);
    let expected = [
        "/angles 0: {x: 0, y: 0, z: 0}",
        "/angles 1: {x: 0.25, y: 0, z: 0}",
        "/angles 2: {x: 0.5, y: 0, z: 0}",
        "0 messages lost",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    assert!(child.status_within(TEST_LIMIT).unwrap().success());
    let report = bridge.finish();
    assert!(report.is_complete(), "{report}");
    assert_eq!((report.transports[0].name.as_str(), report.transports[0].taken), ("print-topics", 4));
}

#[test]
fn a_transport_reads_release_times_of_both_clocks() {
    static NUMBERS: Topic<Vector3, 16> = Topic::new("/numbers");
    let app = name("times");
    let bridge = Bridge::new()
        .topic(&NUMBERS)
        .diagnostics(false)
        .transports(TransportServer::new(&app))
        .start()
        .unwrap();
    let mut transport = Attachment::open(&app, "reader").unwrap();
    let released = punctual::now();
    NUMBERS.publisher().unwrap().publish(released, ZERO);
    let end = Instant::now() + LIMIT;
    let mut times = None;
    while times.is_none() {
        assert!(transport.wait(LIMIT) && Instant::now() < end);
        transport.read(|_, message| times = Some((message.released_ns, message.time_ns)));
    }
    let (released_ns, time_ns) = times.unwrap();
    assert_eq!(released_ns, released.as_ticks());
    assert!(time_ns > released_ns, "the system clock counts from 1970");
    assert!(bridge.finish().is_complete());
}

#[test]
fn a_killed_transport_loses_nothing_if_it_is_started_again() {
    static NUMBERS: Topic<Vector3, 64> = Topic::new("/numbers");
    let app = name("killed");
    let bridge = Bridge::new()
        .topic(&NUMBERS)
        .diagnostics(false)
        .transports(TransportServer::new(&app))
        .start()
        .unwrap();
    let mut numbers = NUMBERS.publisher().unwrap();
    let mut seen = vec![];
    for round in 0..4_u32 {
        let mut child = start_child("count", &app);
        let mut lines = lines(&mut child);
        assert_eq!(lines.next().unwrap(), "+attached");
        publish(&mut numbers, round * 20..round * 20 + 10);
        // Until it has read all messages so far, those in its absence included.
        let last = (round * 20 + 9).to_string();
        for line in lines {
            let number = line.strip_prefix('+').unwrap().to_owned();
            let is_last = number == last;
            seen.push(number.parse::<u32>().unwrap());
            if is_last {
                break;
            }
        }
        child.end_at_once().unwrap();
        publish(&mut numbers, round * 20 + 10..round * 20 + 20);
    }
    // The last messages before a kill may have been printed, but not yet marked as taken.
    seen.dedup();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..70).collect::<Vec<_>>());
    let report = bridge.finish();
    let transport = &report.transports[0];
    assert_eq!((transport.attached, transport.lost), (4, 0), "{report}");
}

#[test]
fn a_transport_answers() {
    static QUESTIONS: Topic<Vector3, 16> = Topic::new("/questions");
    static ANSWERS: Incoming<Vector3> = Incoming::new("/answers", ZERO);
    let app = name("answers");
    let (sender, receiver) = channel();
    let answers = ANSWERS.subscribe().unwrap().release(move |answer| sender.send(answer).is_ok());
    let server = TransportServer::new(&app).subscribe(answers);
    let bridge = Bridge::new().topic(&QUESTIONS).diagnostics(false).transports(server).start().unwrap();
    let mut child = start_child("answer", &app);
    // Its pipe stays open until it ends.
    let mut lines = lines(&mut child);
    assert_eq!(lines.next().unwrap(), "+attached");
    let mut questions = QUESTIONS.publisher().unwrap();
    for number in 0..100 {
        publish(&mut questions, number..number + 1);
        assert_eq!(receiver.recv_timeout(LIMIT).unwrap().x, f64::from(number) / 4.0);
    }
    let report = bridge.finish();
    assert_eq!((report.transports[0].taken, report.transports[0].accepted), (100, 100), "{report}");
    assert!(report.is_complete());
    assert_eq!(lines.count(), 0);
    assert!(child.status_within(TEST_LIMIT).unwrap().success(), "it ends with the app");
}

#[test]
fn an_app_restarts_its_killed_transport() {
    static QUESTIONS: Topic<Vector3, 64> = Topic::new("/questions");
    static ANSWERS: Incoming<Vector3> = Incoming::new("/answers", ZERO);
    let app = name("restarts");
    let (sender, receiver) = channel();
    let answers = ANSWERS.subscribe().unwrap().release(move |answer| sender.send(answer).is_ok());
    let server = TransportServer::new(&app).subscribe(answers);
    let bridge = Bridge::new().topic(&QUESTIONS).transports(server).start().unwrap();
    let mut command = child_command("answer", &app);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let helper = HelperProcess::start(HelperCommand::new(command)).unwrap();
    let mut questions = QUESTIONS.publisher().unwrap();
    for round in 0..3_u32 {
        // A transport gets the messages that are published while it is attached, and the successor
        // of a dead one those since its death.
        let end = Instant::now() + LIMIT;
        let mut number = round * 1_000;
        loop {
            number += 1;
            publish(&mut questions, number..number + 1);
            match receiver.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) if answer.x >= f64::from(round * 1_000) / 4.0 => break,
                _ => assert!(Instant::now() < end),
            }
        }
        if round < 2 {
            let process = helper.process().unwrap().cast_signed();
            // SAFETY: the call takes integers. The process is the helper, which runs until then.
            assert_eq!(unsafe { libc::kill(process, libc::SIGKILL) }, 0);
            while helper.report().ends == u64::from(round) {
                assert!(Instant::now() < end);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let report = bridge.finish();
    assert_eq!(report.transports[0].attached, 3, "{report}");
    let helper = helper.report();
    assert_eq!((helper.starts, helper.ends), (3, 2));
    assert_eq!(helper.last_end.as_deref(), Some("signal: 9 (SIGKILL)"));
}

/// A sink that blocks at its first message, until it is released: a stalled disk.
struct Stalled {
    reached: Option<Sender<()>>,
    release: Receiver<()>,
    seen: Sender<u32>,
}

impl Sink for Stalled {
    fn name(&self) -> String {
        "stalled".into()
    }

    fn begin(&mut self, _: &[Channel], _: Clock) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        if let Some(reached) = self.reached.take() {
            reached.send(()).map_err(io::Error::other)?;
            self.release.recv().map_err(io::Error::other)?;
        }
        self.seen.send(sample.sequence).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stalled_recording_delays_no_transport() {
    static NUMBERS: Topic<Vector3, 16> = Topic::new("/numbers");
    let app = name("stalled");
    let (reached, is_reached) = channel();
    let (release_sink, release) = channel();
    let (seen, sequences) = channel();
    let sink = Stalled { reached: Some(reached), release, seen };
    let bridge =
        Bridge::new().topic(&NUMBERS).sink(sink).diagnostics(false).transports(TransportServer::new(&app));
    let bridge = bridge.start().unwrap();
    let mut transport = Attachment::open(&app, "reader").unwrap();
    let mut numbers = NUMBERS.publisher().unwrap();
    let mut taken = 0;
    for number in 0..100 {
        publish(&mut numbers, number..number + 1);
        while taken <= number {
            assert!(transport.wait(LIMIT));
            transport.read(|_, message| {
                assert_eq!(message.sequence, taken);
                taken += 1;
            });
        }
    }
    is_reached.recv_timeout(LIMIT).unwrap();
    release_sink.send(()).unwrap();
    let report = bridge.finish();
    assert!(report.is_complete(), "{report}");
    assert_eq!(report.sinks[0].written, 100);
    assert_eq!(sequences.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
}
