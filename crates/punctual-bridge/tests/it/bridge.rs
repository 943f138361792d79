//! Bridges with sinks that block, fail or panic, and errors at the start.

use std::fs::OpenOptions;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use punctual::Instant;
use punctual_bridge::{Bridge, Channel, Clock, Csv, Message, Running, Sample, Sink, StartError, Topic};

#[derive(Clone, Copy, Message)]
struct Number {
    number: u64,
}

/// Passes its messages to a function that may wait, fail or panic.
struct CallbackSink<F>(&'static str, F);

impl<F: FnMut(u32) -> io::Result<()> + Send> Sink for CallbackSink<F> {
    fn name(&self) -> String {
        self.0.into()
    }

    fn begin(&mut self, _: &[Channel], _: Clock) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        self.1(sample.sequence)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        Ok(())
    }
}

const fn at(ns: u64) -> Instant {
    Instant::from_ticks(ns)
}

/// Returns a sink that blocks at its first message, until it is released.
fn standing(reached: Sender<()>, goes_on: Receiver<()>, seen: Sender<u32>) -> impl Sink + 'static {
    let mut first = true;
    CallbackSink("standing", move |sequence| {
        if std::mem::take(&mut first) {
            reached.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        seen.send(sequence).unwrap();
        Ok(())
    })
}

#[test]
fn counts_messages_lost_by_a_stalled_sink() {
    static NUMBERS: Topic<Number, 16> = Topic::new("/numbers");
    let (reached, is_reached) = channel();
    let (goes_on, may_go_on) = channel();
    let (seen, sequences) = channel();
    let sink = standing(reached, may_go_on, seen);
    let bridge = Bridge::new().topic(&NUMBERS).sink(sink).start().expect("it can start");
    let mut numbers = NUMBERS.publisher().unwrap();
    numbers.publish(at(0), Number { number: 0 });
    is_reached.recv().unwrap();
    // The helper has taken one message and waits. Publishing does not wait.
    for number in 1..=100 {
        numbers.publish(at(number), Number { number });
    }
    goes_on.send(()).unwrap();
    // After that line a failure ends the test: the sink no longer blocks.
    assert_eq!(NUMBERS.lost(), 100 - 16);
    let report = bridge.finish();
    assert_eq!(sequences.iter().collect::<Vec<_>>(), (0..=16).collect::<Vec<_>>(), "the oldest are kept");
    let topic = report.topic("/numbers").unwrap();
    assert_eq!((topic.taken, topic.lost), (17, 84));
    assert!(!report.is_complete());
    assert_eq!(report.to_string(), "/numbers: 17 messages, 84 lost\nstanding: 17 written\n");

    // The next bridge sees the gap in the numbers, and has no losses itself.
    let (seen, sequences) = channel();
    let sink = CallbackSink("next", move |sequence| seen.send(sequence).map_err(io::Error::other));
    let bridge = Bridge::new().topic(&NUMBERS).sink(sink).start().expect("the topic is free again");
    drop(numbers);
    NUMBERS.publisher().unwrap().publish(at(0), Number { number: 0 });
    assert!(bridge.finish().is_complete());
    assert_eq!(sequences.iter().collect::<Vec<_>>(), [101]);
}

#[test]
fn waits_for_room_in_virtual_time() {
    static NUMBERS: Topic<Number, 4> = Topic::new("/numbers");
    let (seen, sequences) = channel();
    let sink = CallbackSink("slow", move |sequence| seen.send(sequence).map_err(io::Error::other));
    let bridge = Bridge::new().topic(&NUMBERS).sink(sink).virtual_time(true).start().unwrap();
    let mut numbers = NUMBERS.publisher().unwrap();
    (0..50).for_each(|number| numbers.publish(at(number), Number { number }));
    assert!(bridge.finish().is_complete());
    assert_eq!(sequences.iter().count(), 50);
    // Without a bridge no slots are freed, and the publisher does not wait.
    (0..50).for_each(|number| numbers.publish(at(number), Number { number }));
    assert_eq!(NUMBERS.lost(), 46);
}

#[test]
fn continues_without_a_failed_sink() {
    static NUMBERS: Topic<Number, 64> = Topic::new("/numbers");
    let (seen, sequences) = channel();
    let fails = |sequence| if sequence == 3 { Err(io::Error::other("out of paper")) } else { Ok(()) };
    let panics = |sequence| if sequence == 5 { panic!("an expected panic") } else { Ok(()) };
    let bridge = Bridge::new()
        .topic(&NUMBERS)
        .sink(CallbackSink("failing", fails))
        .sink(CallbackSink("panicking", panics));
    let bridge =
        bridge.sink(CallbackSink("last", move |sequence| seen.send(sequence).map_err(io::Error::other)));
    let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let bridge = bridge.sink(Csv::new("/numbers", full)).start().unwrap();
    let mut numbers = NUMBERS.publisher().unwrap();
    (0..10).for_each(|number| numbers.publish(at(number), Number { number }));
    let report = bridge.finish();
    assert_eq!(sequences.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    let expected = "/numbers: 10 messages, 0 lost\n\
                    failing: 3 written, 7 missed: out of paper\n\
                    panicking: 5 written, 5 missed: it panicked\n\
                    last: 10 written\n";
    let printed = report.to_string();
    assert!(printed.starts_with(expected), "{printed}");
    let csv = report.sinks.last().unwrap();
    assert_eq!(csv.name, "CSV of /numbers");
    assert!(csv.error.as_ref().is_some_and(|error| error.contains("No space left")), "{printed}");
    assert!(!report.is_complete());
}

#[test]
fn continues_with_a_full_sink() {
    static NUMBERS: Topic<Number, 8> = Topic::new("/numbers");
    let (reached, is_reached) = channel();
    let (goes_on, may_go_on) = channel::<()>();
    let (seen, sequences) = channel();
    // Peers take the first, block, and then take every fourth.
    let moody = move |sequence: u32| {
        if sequence == 0 {
            reached.send(()).map_err(io::Error::other)?;
            may_go_on.recv().map_err(io::Error::other)?;
        }
        match sequence % 4 {
            0 => seen.send(sequence).map_err(io::Error::other),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    };
    let bridge = Bridge::new().topic(&NUMBERS).sink(CallbackSink("moody", moody)).start().unwrap();
    let mut numbers = NUMBERS.publisher().unwrap();
    numbers.publish(at(0), Number { number: 0 });
    is_reached.recv().unwrap();
    (1..20).for_each(|number| numbers.publish(at(number), Number { number }));
    goes_on.send(()).unwrap();
    let report = bridge.finish();
    assert_eq!(sequences.iter().collect::<Vec<_>>(), [0, 4, 8]);
    // Each of the 20 published messages is delivered or counted.
    let (topic, sink) = (&report.topics[0], &report.sinks[0]);
    assert_eq!((topic.taken + topic.lost, topic.lost), (20, 11));
    assert_eq!((sink.written, sink.dropped, sink.missed), (3, 6, 0));
    let printed = "/numbers: 9 messages, 11 lost\nmoody: 3 written, 6 dropped, because peers were blocked\n";
    assert_eq!(report.to_string(), printed);
    assert!(!report.is_complete());
}

#[test]
fn passes_accepted_topics_to_sink() {
    static LEFT: Topic<Number, 8> = Topic::new("/left");
    static RIGHT: Topic<Number, 8> = Topic::new("/right");
    let (mut table, csv) = io::pipe().unwrap();
    let bridge = Bridge::new().topic(&LEFT).topic(&RIGHT).sink(Csv::new("/right", csv));
    let bridge = bridge.virtual_time(true).start().expect("it can start");
    let (mut left, mut right) = (LEFT.publisher().unwrap(), RIGHT.publisher().unwrap());
    for number in 1..=3 {
        left.publish(at(number), Number { number });
        right.publish(at(10 * number), Number { number: 100 * number });
    }
    assert!(bridge.finish().is_complete());
    let mut text = String::new();
    io::Read::read_to_string(&mut table, &mut text).unwrap();
    assert_eq!(text, "time_ns,sequence,number\n10,0,100\n20,1,200\n30,2,300\n");
}

#[test]
fn rejects_invalid_configurations() {
    static NUMBERS: Topic<Number, 4> = Topic::new("/numbers");
    static SAME: Topic<Number, 4> = Topic::new("/numbers");
    static UNNAMED: Topic<Number, 4> = Topic::new("numbers");
    let error = |started: Result<Running, StartError>| started.map(drop).unwrap_err().to_string();
    let twice = Bridge::new().topic(&NUMBERS).topic(&SAME).start();
    assert_eq!(error(twice), "two topics are named /numbers");
    let unnamed = error(Bridge::new().topic(&UNNAMED).start());
    assert!(unnamed.starts_with("the topic name \"numbers\" is invalid"), "{unnamed}");
    let unknown = Bridge::new().topic(&NUMBERS).sink(Csv::new("/angles", io::sink())).start();
    assert_eq!(error(unknown), "CSV of /angles: the bridge has no topic /angles; it has /numbers");
    let bridge = Bridge::new().topic(&NUMBERS).start().expect("nothing was taken by those that failed");
    let second = error(Bridge::new().topic(&NUMBERS).start());
    assert_eq!(second, "the topic /numbers belongs to another bridge that has not finished");
    drop(bridge);
    drop(Bridge::new().topic(&NUMBERS).start().expect("the first one has finished"));
}
